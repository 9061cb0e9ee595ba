"""What torch's users see of the optimizer, on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/surface.py")
