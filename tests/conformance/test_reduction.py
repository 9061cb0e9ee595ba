"""Operations, compression, groups, accumulation and sparse gradients, on two ranks."""

from tests.conformance.programs import scenario_tests

test_case = scenario_tests("reduction")
