"""Names, arguments and attributes, on two ranks."""

from tests.conformance.programs import scenario_tests

test_case = scenario_tests("construction")
