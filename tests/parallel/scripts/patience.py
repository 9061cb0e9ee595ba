"""Horovod's own waits spin in sched_yield(); with more ranks than cores they starve everybody else.

Polling in between changes when a rank looks, not what it sees.
"""

from __future__ import annotations

import time
from typing import Any

import horovod.torch as stock
from horovod.torch import mpi_ops
from horovod.torch import optimizer as stock_optimizer

_POLL_S = 0.0002


def wait_patiently() -> None:
    """From now on Horovod's synchronous calls leave the core to others while they wait."""
    spinning = mpi_ops.synchronize

    def synchronize(handle: int) -> Any:
        while not mpi_ops.poll(handle):
            time.sleep(_POLL_S)
        return spinning(handle)

    for module in (mpi_ops, stock_optimizer, stock):
        module.synchronize = synchronize
