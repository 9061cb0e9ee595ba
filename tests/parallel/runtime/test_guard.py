"""The guard over late updates on real ranks, with gradients that turn as the test wants."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/guarded.py")
