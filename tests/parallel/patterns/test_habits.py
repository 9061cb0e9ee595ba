"""What scripts do around a step, on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("patterns/habits.py")
