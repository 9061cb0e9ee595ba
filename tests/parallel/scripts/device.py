"""The device that rank programs train on: DEFT_TEST_DEVICE, the host by default.

Read here and nowhere else, and taken out of the environment: deft_horovod refuses variables of its
prefix that it does not know. Import it before any optimizer is made. All ranks share the GPUs there
are, in turn.
"""

from __future__ import annotations

import os
from typing import Final

import horovod.torch as stock
import torch


def _chosen() -> torch.device:
    device = torch.device(os.environ.pop("DEFT_TEST_DEVICE", "") or "cpu")
    if device.type != "cuda":
        return device
    torch.cuda.set_device(int(os.environ["HOROVOD_LOCAL_RANK"]) % torch.cuda.device_count())
    # The same sums in every run, so that twins can be compared bit for bit.
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda", torch.cuda.current_device())


DEVICE: Final = _chosen()


def join_device() -> int:
    """For hvd.join(): where its zeros have to lie, which is where the messages of others do."""
    on_device = DEVICE.type == "cuda" and stock.nccl_built()
    return DEVICE.index if on_device else -1
