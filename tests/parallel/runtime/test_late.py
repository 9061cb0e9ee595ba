"""Late updates on two ranks, bit for bit those of plain torch."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/late.py")
