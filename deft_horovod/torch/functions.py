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
    engines = list(world().engines)
    for engine in engines:
        engine.open_gates()
    last = int(stock.join(device))
    for engine in engines:
        engine.rejoin()
    return last


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, model: torch.nn.Module | None = None
) -> None:
    """Makes the optimizer's state equal to that of one rank.

    A rank without any state gets one from a step of zeros by the user's own optimizer. Such a step
    may still move parameters (weight decay), and must not: they are put back.
    """
    inner = optimizer
    if isinstance(optimizer, DistributedOptimizer):
        optimizer.flush()
        inner = optimizer.inner
    parameters = [p for group in inner.param_groups for p in group["params"]]
    before = [] if inner.state else [(p, p.detach().clone(), p.grad) for p in parameters]
    stock.broadcast_optimizer_state(inner, root_rank, model)
    with torch.no_grad():
        for parameter, value, gradient in before:
            parameter.copy_(value)
            parameter.grad = gradient
