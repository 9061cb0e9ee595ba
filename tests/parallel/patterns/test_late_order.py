"""Orders of clearing, stepping, reading and saving while updates come late, on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("patterns/late_order.py")
