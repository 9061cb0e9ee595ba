"""Training in wire formats on eight ranks, and on three and five of them side by side."""

from tests.parallel.cases import case_tests

test_case = case_tests("formats/many_ranks.py", nps=(8,), limit_s=150)
