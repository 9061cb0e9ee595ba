"""Loops that read or write parameters between two steps, on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("patterns/between_steps.py")
