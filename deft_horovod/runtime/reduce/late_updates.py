"""Updates outside of ``step()``: what is still on its way, applied at once.

By the user's own optimizer, on exactly the parameters that are due, with the options (learning
rate, ...) of the moment at which they are applied.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import torch

from deft_horovod.runtime.reduce.loss_scale import LossScales
from deft_horovod.runtime.reduce.partial_update import (
    faster,
    options_of,
    own_gradients_kept,
    update_only,
)
from deft_horovod.runtime.reduce.planned import PlannedReducer

if TYPE_CHECKING:
    from deft_horovod import _C as native

_LOG: Final = logging.getLogger("deft_horovod")


def apply_now(
    reducer: PlannedReducer,
    inner: torch.optim.Optimizer,
    dues: Sequence[native.Due],
    scales: LossScales,
) -> None:
    """Waits for these generations and lets the optimizer update their parameters."""
    reducer.lift()
    touched = [reducer.members[slot].tensor for slot in sorted(reducer.members_of(dues))]
    with own_gradients_kept(touched):
        reducer.take(dues)
        if scales.used:
            reducer.dropped += scales.unscale(reducer, dues)
        _update(reducer, inner, dues)


def _update(
    reducer: PlannedReducer, inner: torch.optim.Optimizer, dues: Sequence[native.Due]
) -> None:
    for rate, tensors in reducer.tensors_by_rate(dues).items():
        arrived = [tensor for tensor in tensors if tensor.grad is not None]
        update_only(inner, arrived, faster(options_of(inner), rate))


def discard(
    reducer: PlannedReducer,
    inner: torch.optim.Optimizer,
    scales: LossScales,
    *,
    kept: bool = False,
) -> list[native.Due]:
    """Ends the step that is under way without its gradients. What is due from earlier steps is
    applied, what holds this step is void. `kept`: the step goes on afterwards.

    Returns what is due behind gates: it may leave in the next forward only.
    """
    reducer.session.close_step()
    step, dues = reducer.session.step, reducer.session.due()
    reducer.boundary = dues
    reducer.void(dues, step, kept=kept)
    apply_now(reducer, inner, [due for due in dues if not due.gated], scales)
    reducer.session.end_step()
    reducer.void(reducer.session.alive(), step, kept=kept)
    reducer.updated()
    return [due for due in dues if due.gated]


def throw_away(reducer: PlannedReducer, inner: torch.optim.Optimizer, scales: LossScales) -> None:
    """Clears a boundary whose averages are in ``p.grad``, as after ``synchronize()``: what is due
    from earlier steps is applied, what holds the step that has just ended is void."""
    step = reducer.session.step - 1
    scales.hide()
    fresh = [due for due in reducer.boundary if due.last_step >= step]
    for slot in reducer.members_of(fresh):
        reducer.members[slot].tensor.grad = None
    reducer.dropped += len(fresh)
    reducer.boundary = [due for due in reducer.boundary if due.last_step < step]
    if scales.used:
        reducer.dropped += scales.unscale(reducer, reducer.boundary)
    _update(reducer, inner, reducer.boundary)
    reducer.void(reducer.session.alive(), step)
    reducer.updated()


@contextmanager
def merged_apart(reducer: PlannedReducer, inner: torch.optim.Optimizer) -> Iterator[None]:
    """Around the optimizer's own step: updates with another learning rate are made after it."""
    by_rate = reducer.tensors_by_rate(due for due in reducer.boundary if not due.gated)
    apart = [
        (rate, [(tensor, tensor.grad) for tensor in tensors if tensor.grad is not None])
        for rate, tensors in by_rate.items()
        if rate != 1
    ]
    for _, pairs in apart:
        for tensor, _ in pairs:
            tensor.grad = None
    try:
        yield
    finally:
        for _, pairs in apart:
            for tensor, gradient in pairs:
                tensor.grad = gradient
    for rate, pairs in apart:
        update_only(inner, [tensor for tensor, _ in pairs], faster(options_of(inner), rate))


def depart(reducer: PlannedReducer, inner: torch.optim.Optimizer, scales: LossScales) -> int:
    """This rank goes into ``join()``: what has arrived is applied. What has not left is lost, since
    from now on Horovod sends zeros for this rank; returns how many generations that are."""
    arrived, lost = reducer.depart()
    apply_now(reducer, inner, arrived, scales)
    if lost:
        _LOG.warning(
            "hvd.join(): %d gradients of the last steps are dropped; if all ranks run the same "
            "number of steps, call optimizer.flush() before join()",
            lost,
        )
    return lost


def flush(reducer: PlannedReducer, inner: torch.optim.Optimizer, scales: LossScales) -> None:
    """Sends what is left and applies it, boundary by boundary. All ranks at the same boundary."""
    for dues in reducer.flush():
        apply_now(reducer, inner, dues, scales)
