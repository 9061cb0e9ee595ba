"""The study's simulated workers and real ranks train alike."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/convergence.py")
