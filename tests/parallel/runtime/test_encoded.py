"""EncodedLink: every format against sums by hand, on two, three and four ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/encoded.py", nps=(2, 3, 4), limit_s=150)
