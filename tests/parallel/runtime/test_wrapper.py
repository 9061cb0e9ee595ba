"""What a script reads, and where, on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/reads.py")
