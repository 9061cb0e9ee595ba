"""Process sets, on three ranks."""

from tests.conformance.programs import scenario_tests

test_case = scenario_tests("process_sets", np=3)
