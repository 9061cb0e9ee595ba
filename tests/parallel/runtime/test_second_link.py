"""The second link under horovodrun, beside Horovod's, over the loopback."""

from tests.parallel.cases import case_tests

test_case = case_tests("runtime/second_link.py", nps=(2, 4), limit_s=150)
