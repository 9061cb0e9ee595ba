"""What needs a device says so where there is none. The way by host memory is tested in C++."""

import horovod.torch as stock
import pytest
import torch

from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.planned import open_link


@pytest.fixture(autouse=True)
def horovod():
    stock.init()


def reduction():
    return Reduction(stock.Sum, stock.Compression.none, 1.0, False, stock.global_process_set)


def test_host_memory_needs_no_staging():
    assert isinstance(open_link(reduction(), [torch.device("cpu")]), native.HorovodLink)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_device_the_error_says_why():
    with pytest.raises(RuntimeError, match="no copy stream on CUDA device 0"):
        native.StagedLink(open_link(reduction()), 0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("nccl", [False, True])
def test_what_is_on_a_device_can_be_staged(monkeypatch, nccl):
    monkeypatch.setattr(stock, "nccl_built", lambda: nccl)
    with pytest.raises(RuntimeError, match="no copy stream on CUDA device 1"):
        open_link(reduction(), [torch.device("cpu"), torch.device("cuda", 1)])
