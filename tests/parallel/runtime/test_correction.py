"""Predicted late updates on two ranks: bit for bit those of copies of the model in plain torch."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/corrected.py")
