"""Ranks of torch.distributed ask and answer by the names of Horovod."""

from tests.parallel.cases import case_tests

test_case = case_tests("distributed/asking.py", nps=(2, 3), env={"TEST_LAUNCHER": "torchrun"})
