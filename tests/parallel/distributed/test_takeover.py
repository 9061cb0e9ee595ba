"""Scripts of DistributedDataParallel as they are: the same bits between two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("distributed/taken.py", nps=(2, 3), env={"TEST_LAUNCHER": "torchrun"})
