"""Models and gradients out of the ordinary, on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("patterns/special.py")
