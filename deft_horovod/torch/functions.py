"""The functions of ``horovod.torch`` that have to know about our optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from deft_horovod.peers import stock
from deft_horovod.runtime.process import this_process
from deft_horovod.runtime.reduce.updates import options_of, update_only
from deft_horovod.runtime.wrapper import DistributedOptimizer


def init(*args: Any, **kwargs: Any) -> None:
    """Initialises Horovod; see :func:`horovod.torch.init`."""
    fresh = not stock.is_initialized()
    stock.init(*args, **kwargs)
    if fresh:
        this_process().renew()


def shutdown() -> None:
    """Shuts Horovod down; see :func:`horovod.torch.shutdown`."""
    this_process().leave()
    stock.shutdown()
    this_process().renew()


def join(device: int = -1) -> int:
    """This rank has no more data; waits for the others. See :func:`horovod.torch.join`.

    Updates that are still on their way are applied first.
    """
    engines = this_process().in_order()
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

    A rank without any state gets one from a step of zeros by the user's own optimizer, which may
    still move parameters (weight decay). Where no rank has a state, all of them move alike, as with
    Horovod's own. Where some have, the others must not differ from them: theirs are put back.
    """
    inner = optimizer
    if isinstance(optimizer, DistributedOptimizer):
        optimizer.flush()
        inner = optimizer.inner
    parameters = [p for group in inner.param_groups for p in group["params"]]
    somewhere = _with_state_on_any_rank(inner, parameters)
    if not somewhere:
        stock.broadcast_optimizer_state(inner, root_rank, model)
        return
    with _values_kept([p for p in parameters if p not in inner.state]):
        _complete_state(inner, somewhere)
        stock.broadcast_optimizer_state(inner, root_rank, model)


def _with_state_on_any_rank(
    inner: torch.optim.Optimizer, parameters: list[torch.Tensor]
) -> list[torch.Tensor]:
    has_state = [float(p in inner.state) for p in parameters]
    here = torch.tensor(has_state, dtype=torch.float32, device="cpu")
    anywhere = stock.allreduce(here, op=stock.Sum, name="deft.state.entries").tolist()
    return [p for p, ranks in zip(parameters, anywhere, strict=True) if ranks]


def _complete_state(inner: torch.optim.Optimizer, parameters: list[torch.Tensor]) -> None:
    """An entry of each of these on all ranks, in the same order, as Horovod's broadcast takes for
    granted.

    Where updates come late, or a rank has left early, some parameters have no state yet on some
    ranks; there a step of zeros makes it.
    """
    missing = [p for p in parameters if p not in inner.state]
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
