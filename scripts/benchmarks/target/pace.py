"""Layers take as long as they would on an accelerator, while the processor is free.

Each layer's part of forward and backward takes as long as it is given: for the rest of it the rank
sleeps. What the processor needed of it is counted in its own time, so that waiting adds to a step,
and a processor that changes its speed does not. Hooks count as computing, as they run while an
accelerator computes. (`scripts.cluster.accelerator` does this for layers that compute nothing: its
clock takes no account of what the processor does, or waits for, within a layer.)
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from scripts.studies.convergence import tasks as convergence_tasks

_FORWARD = 1.0 / 3.0  # of a step


class Computing:
    """For how long this thread has computed, in seconds, without updates: an accelerator would need
    time of its own for them, wherever in a step they happen."""

    def __init__(self) -> None:
        self._updates_s = 0.0

    def __call__(self) -> float:
        return time.thread_time() - self._updates_s

    def leave_out_updates(self) -> None:
        """Those of torch's optimizers, from now on in this process."""
        for rule in ("adam", "sgd"):  # also that of AdamW
            module = importlib.import_module(f"torch.optim.{rule}")
            setattr(module, rule, self._leave_out(getattr(module, rule)))

    def _leave_out(self, update: Callable[..., None]) -> Callable[..., None]:
        def counted(*args: Any, **options: Any) -> None:
            began_s = time.thread_time()
            update(*args, **options)
            self._updates_s += time.thread_time() - began_s

        return counted


class Pace:
    """Sleeps before each block's part of a stage for what is left of the part before, once it is
    told how long they take."""

    def __init__(self, net: convergence_tasks.Transformer, computed_s: Callable[[], float]) -> None:
        self._blocks = [*net.blocks, net.head]
        self._computed_s = computed_s
        self._step_s = self._began_s = 0.0
        for block in self._blocks:
            block.register_forward_pre_hook(lambda *_: self._sleep(_FORWARD))
            block.register_forward_hook(self._watch_backward)

    def take(self, step_s: float) -> None:
        """So long the layers of a step take from now on, or longer where the processor does."""
        self._step_s = step_s

    def begin_step(self) -> None:
        """Whatever came before is not of its layers."""
        self._began_s = self._computed_s()

    def _sleep(self, share: float) -> None:
        part_s = self._step_s * share / len(self._blocks)
        left_s = part_s - (self._computed_s() - self._began_s)
        if left_s > 0.0:
            time.sleep(left_s)
        self._began_s = self._computed_s()

    def _watch_backward(self, _: nn.Module, __: object, output: torch.Tensor) -> None:
        if output.requires_grad:
            output.register_hook(lambda _: self._sleep(1.0 - _FORWARD))
