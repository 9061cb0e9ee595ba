"""Errors before ``hvd.init()``."""

from tests.conformance.programs import scenario_tests

test_case = scenario_tests("before_init")
