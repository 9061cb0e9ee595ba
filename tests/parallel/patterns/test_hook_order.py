"""What users' hooks make of a gradient is what leaves, on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("patterns/hook_order.py")
