"""Whole courses on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/controlled.py")
