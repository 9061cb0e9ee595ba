"""Updates outside of ``step()``: of some parameters, with the options that are due for them.

No update rule is written here: the user's own optimizer runs on shortened parameter lists. The
first half of this file does that for any parameters, the second for generations that are late.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import torch

from deft_horovod.runtime.reduce.loss_scale import LossScales
from deft_horovod.runtime.reduce.planned import PlannedReducer

if TYPE_CHECKING:
    from deft_horovod import _C as native

Options = list[dict[str, Any]]

_LOG: Final = logging.getLogger("deft_horovod")

_ONE_PASS: Final = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)


def options_of(optimizer: torch.optim.Optimizer) -> Options:
    """The options of every group (learning rate, momentum, ...) as they are now. Schedulers write
    into options that are tensors, so these are copied."""
    return [
        {
            key: value.clone() if isinstance(value, torch.Tensor) else value
            for key, value in group.items()
            if key != "params"
        }
        for group in optimizer.param_groups
    ]


def faster(options: Options, times: float) -> Options:
    """The same with so many times the learning rate, where there is one."""
    return [{**group, "lr": group["lr"] * times} if "lr" in group else group for group in options]


def in_one_pass(
    optimizer: torch.optim.Optimizer, tensors: Sequence[torch.Tensor], options: Options
) -> Options:
    """The same by torch's kernels that go over memory once, where the user left that open.

    On a CPU a step is several times faster so. Its last bits differ: for guesses only.
    """
    # One list of those that have momentum and those that have none yet is refused.
    alike = len({bool(optimizer.state.get(tensor)) for tensor in tensors}) == 1
    plain = all(t.device.type == "cpu" and t.dtype == torch.float32 for t in tensors)
    if type(optimizer) not in _ONE_PASS or not alike or not plain:
        return options
    made = []
    for group, then in zip(optimizer.param_groups, options, strict=False):
        now = {**group, **then}
        told = any(now[name] for name in ("fused", "foreach", "differentiable"))
        made.append(then if told else {**then, "fused": True})
    return made


@contextmanager
def own_gradients_kept(tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """Between steps what ``p.grad`` holds belongs to the user: it is put aside and comes back."""
    kept = [tensor.grad for tensor in tensors]
    for tensor in tensors:
        tensor.grad = None
    try:
        yield
    finally:
        for tensor, gradient in zip(tensors, kept, strict=True):
            tensor.grad = gradient


@contextmanager
def _restricted(
    optimizer: torch.optim.Optimizer, tensors: Iterable[torch.Tensor], options: Options
) -> Iterator[None]:
    chosen = {id(tensor) for tensor in tensors}
    groups = optimizer.param_groups
    saved = [dict(group) for group in groups]
    try:
        for group, then in zip(groups, options, strict=False):
            group.update(then)
            group["params"] = [p for p in group["params"] if id(p) in chosen]
        for group in groups[len(options) :]:  # added after that step
            group["params"] = []
        yield
    finally:
        for group, before in zip(groups, saved, strict=True):
            group.clear()
            group.update(before)


def bare_step(optimizer: torch.optim.Optimizer) -> None:
    """A step of the user's optimizer, below the hooks that torch puts around it."""
    step = type(optimizer).step
    bare = getattr(step, "__wrapped__", step) if getattr(step, "hooked", False) else step
    bare(optimizer)


def update_only(
    optimizer: torch.optim.Optimizer, tensors: Sequence[torch.Tensor], options: Options
) -> None:
    """One update of these parameters from their ``p.grad``, with the options given.

    Step hooks do not run: they have run at the boundary, once for the whole step.
    It may be called from inside a forward, so what that switched on is switched off.
    """
    if not tensors:
        return
    device_type = tensors[0].device.type
    with (
        _restricted(optimizer, tensors, options),
        torch.inference_mode(mode=False),
        torch.autocast(device_type, enabled=False),
    ):
        bare_step(optimizer)


# --- late generations ------------------------------------------------------------------------
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


def update_all(
    inner: torch.optim.Optimizer,
    late: PlannedReducer | None,
    closure: Callable[[], Any] | None = None,
) -> Any:
    """The optimizer's own step, with all hooks. `late`: what is due there was late."""
    step = inner.step if closure is None else functools.partial(inner.step, closure)
    if late is None:
        return step()
    with _merged_apart(late, inner):
        return step()


@contextmanager
def _merged_apart(reducer: PlannedReducer, inner: torch.optim.Optimizer) -> Iterator[None]:
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
