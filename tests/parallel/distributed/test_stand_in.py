"""What a script gets that asks for DistributedDataParallel."""

from tests.parallel.cases import case_tests

test_case = case_tests("distributed/stand_in.py", env={"TEST_LAUNCHER": "torchrun"})
