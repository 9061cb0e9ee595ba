"""Uneven data with hvd.join(), on two ranks, against Horovod's own result."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/joining.py")
