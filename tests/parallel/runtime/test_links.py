"""HorovodLink: every operation against sums by hand, on two and on three ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/links.py", nps=(2, 3), limit_s=150)
