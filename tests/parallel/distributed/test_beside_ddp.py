"""Over torch.distributed: as torch's DistributedDataParallel, bit for bit between two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("distributed/beside_ddp.py", nps=(2, 3), env={"TEST_LAUNCHER": "torchrun"})
