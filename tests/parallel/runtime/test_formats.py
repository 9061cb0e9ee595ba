"""Training in wire formats, on two and on four ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/formats.py", nps=(2, 4), limit_s=200)
