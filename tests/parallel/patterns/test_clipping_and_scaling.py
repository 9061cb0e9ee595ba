"""Clipping and mixed precision as Horovod's documentation writes them, on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("patterns/clipping_and_scaling.py")
