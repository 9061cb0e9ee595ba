"""EncodedLink: every format against sums by hand, on two and on four ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/encoded.py", nps=(2, 4), limit_s=150)
