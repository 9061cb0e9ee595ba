"""The functions of ``horovod.torch`` that have to know about our optimizer."""

from __future__ import annotations

from typing import Any

import horovod.torch as stock
import torch

from deft_horovod.runtime.optimizer import DistributedOptimizer
from deft_horovod.runtime.world import world


def init(*args: Any, **kwargs: Any) -> None:
    """Initialises Horovod; see :func:`horovod.torch.init`."""
    fresh = not stock.is_initialized()
    stock.init(*args, **kwargs)
    if fresh:
        world().renew()


def shutdown() -> None:
    """Shuts Horovod down; see :func:`horovod.torch.shutdown`."""
    stock.shutdown()
    world().renew()


def join(device: int = -1) -> int:
    """This rank has no more data; waits for the others. See :func:`horovod.torch.join`.

    Updates that are still on their way are applied first.
    """
    for engine in list(world().engines):
        engine.open_gates()
    return int(stock.join(device))


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, model: torch.nn.Module | None = None
) -> None:
    """Makes the optimizer's state equal to that of one rank.

    A rank without any state yet makes an empty one by a step of zeros, which must not travel: the
    user's own optimizer does it.
    """
    inner = optimizer
    if isinstance(optimizer, DistributedOptimizer):
        optimizer.flush()
        inner = optimizer.inner
    stock.broadcast_optimizer_state(inner, root_rank, model)
