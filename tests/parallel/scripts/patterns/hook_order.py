"""Hooks of users on gradients, registered once training has begun, against Horovod's.

Only then: in the first step our own may not be there yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

from tests.parallel.scripts.training import Data, loss_of, mlp
from tests.parallel.scripts.twins import Twins, main, ours_of

STEPS = 6
_BEFORE = 3  # of those: our own hooks are older
_LARGEST = 2.0**-10

GradientHook = Callable[[torch.Tensor], None]


def _halve(p: torch.Tensor) -> None:
    """In place."""
    assert p.grad is not None
    p.grad.mul_(0.5)


def _clip(p: torch.Tensor) -> None:
    """As another tensor. Not linear: to clip averages is not the same."""
    assert p.grad is not None
    p.grad = p.grad.clamp(-_LARGEST, _LARGEST)


def _hooked(model: nn.Module, hook: GradientHook) -> list[Any]:
    return [p.register_post_accumulate_grad_hook(hook) for p in model.parameters()]


def _largest(model: nn.Module) -> float:
    return max(p.grad.abs().max().item() for p in model.parameters() if p.grad is not None)


def _run(policy: str, hook: GradientHook, *, passes: int = 1, **arguments: Any) -> None:
    twins, data = Twins(policy, backward_passes_per_step=passes, **arguments), Data()
    for step in range(STEPS):
        if step == _BEFORE:
            for model, _ in twins:
                _hooked(model, hook)
        batches = [data.next() for _ in range(passes)]
        for model, optimizer in twins:
            optimizer.zero_grad()
            for batch in batches:
                loss_of(model, batch).backward()
            optimizer.step()
    twins.check()


def case_halved_in_place(policy: str) -> None:
    _run(policy, _halve)


def case_clipped_into_another_tensor(policy: str) -> None:
    _run(policy, _clip)


def case_in_every_backward_pass(policy: str) -> None:
    _run(policy, _halve, passes=3)


def case_with_fp16_on_the_wire(policy: str) -> None:
    _run(policy, _halve, compression=stock.Compression.fp16)


def case_in_groups() -> None:
    for policy in ("stock", "bucket"):  # the others keep none together
        _run(policy, _halve, groups=2)


def case_what_leaves_is_clipped(policy: str) -> None:
    """By the averages themselves: no reference could err the same way."""
    model, data = mlp(), Data()
    optimizer = ours_of(model, policy)
    for step in range(STEPS):
        if step == _BEFORE:
            _hooked(model, _clip)
        loss_of(model, data.next()).backward()
        optimizer.synchronize()
        largest = _largest(model)
        assert (largest <= _LARGEST) == (step >= _BEFORE), f"step {step}: {largest}"
        with optimizer.skip_synchronize():
            optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main(globals())
