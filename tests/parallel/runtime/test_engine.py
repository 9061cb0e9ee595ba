"""Missing, frozen and sparse gradients, on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("patterns/unused.py")
