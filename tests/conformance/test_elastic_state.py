"""States, handlers and samplers of elastic training, on two ranks."""

from tests.conformance.programs import scenario_tests

test_case = scenario_tests("elastic_state")
