"""The user's own optimizer, applied to some of its parameters with the options of an earlier step.

No update rule is written here: the inner optimizer runs on shortened parameter lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch

Options = list[dict[str, Any]]

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
