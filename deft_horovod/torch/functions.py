"""The functions of ``horovod.torch`` that have to know about our optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import horovod.torch as stock
import torch

from deft_horovod.runtime.optimizer import DistributedOptimizer
from deft_horovod.runtime.partial_update import options_of, update_only
from deft_horovod.runtime.world import world


def init(*args: Any, **kwargs: Any) -> None:
    """Initialises Horovod; see :func:`horovod.torch.init`."""
    fresh = not stock.is_initialized()
    stock.init(*args, **kwargs)
    if fresh:
        world().renew()


def shutdown() -> None:
    """Shuts Horovod down; see :func:`horovod.torch.shutdown`."""
    world().leave()
    stock.shutdown()
    world().renew()


def join(device: int = -1) -> int:
    """This rank has no more data; waits for the others. See :func:`horovod.torch.join`.

    Updates that are still on their way are applied first.
    """
    engines = world().in_order()
    for engine in engines:
        engine.depart()
    last = int(stock.join(device))
    for engine in engines:
        engine.rejoin()
    return last


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, model: torch.nn.Module | None = None
) -> None:
    """Makes the optimizer's state equal to that of one rank.

    A rank without any state gets one from a step of zeros by the user's own optimizer. Such a step
    may still move parameters (weight decay), and must not: they are put back. The zero gradients
    stay, as with Horovod's own.
    """
    inner = optimizer
    if isinstance(optimizer, DistributedOptimizer):
        optimizer.flush()
        inner = optimizer.inner
    parameters = [p for group in inner.param_groups for p in group["params"]]
    fresh = [] if inner.state else [p for p in parameters if p.requires_grad]
    with _values_kept([p for p in parameters if p not in inner.state]):
        _complete_state(inner, parameters)
        stock.broadcast_optimizer_state(inner, root_rank, model)
        gradients = [(p, p.grad) for p in fresh]
    for parameter, gradient in gradients:
        parameter.grad = torch.zeros_like(parameter) if gradient is None else gradient


def _complete_state(inner: torch.optim.Optimizer, parameters: list[torch.Tensor]) -> None:
    """The same entries on all ranks, in the same order, as Horovod's broadcast takes for granted.

    Where updates come late, or a rank has left early, some parameters have no state yet on some
    ranks; there a step of zeros makes it.
    """
    has_state = [float(p in inner.state) for p in parameters]
    here = torch.tensor(has_state, dtype=torch.float32, device="cpu")
    anywhere = stock.allreduce(here, op=stock.Sum, name="deft.state.entries")
    missing = [
        p
        for p, mine, others in zip(parameters, here.tolist(), anywhere.tolist(), strict=True)
        if not mine and others
    ]
    for parameter in missing:
        parameter.grad = torch.zeros_like(parameter)
    update_only(inner, missing, options_of(inner))
    ordered = [(p, inner.state.pop(p)) for p in parameters if p in inner.state]
    inner.state.update(ordered)


@contextmanager
def _values_kept(parameters: list[torch.Tensor]) -> Iterator[None]:
    before = [(p, p.detach().clone(), p.grad) for p in parameters]
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value, gradient in before:
                parameter.copy_(value)
                parameter.grad = gradient
