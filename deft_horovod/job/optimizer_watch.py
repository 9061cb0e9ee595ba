"""Measures the optimizers of a script that trains on one rank, however they were made.

They are met where torch lets everybody pass: before the update of any optimizer. The first step of
an optimizer tells that it is there, the second how many backward passes make a step; from the third
on it is watched as a distributed one is.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from deft_horovod.peers import stock
from deft_horovod.profile import Profile
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.job_request import JobRequest
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.pass_count import PassCount
from deft_horovod.runtime.measure.profiler import Profiler
from deft_horovod.runtime.ranks.named_parameters import members_of
from deft_horovod.runtime.ranks.parameter_names import renamed
from deft_horovod.runtime.ranks.single_rank import SingleRank

_LOOKS: Final = 2  # steps before anything is watched
_ANY_NUMBER: Final = 1 << 40  # of passes


class OptimizerWatch:
    """Follows every optimizer that steps, until it is closed."""

    def __init__(self, request: JobRequest[Profile]) -> None:
        self._request = request
        self._followed: weakref.WeakKeyDictionary[torch.optim.Optimizer, FollowedOptimizer] = (
            weakref.WeakKeyDictionary()
        )
        self._hook = register_optimizer_step_pre_hook(self._before_step)

    def close(self) -> None:
        """Removes all hooks."""
        self._hook.remove()
        for followed in self._followed.values():
            followed.detach()

    def _before_step(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        if stock.is_initialized() and stock.size() > 1:
            return None  # there are others, and a step is over when all have their averages
        self._request.require_running()
        followed = self._followed.get(optimizer)
        if followed is None:
            followed = self._followed[optimizer] = FollowedOptimizer(optimizer, self._request)
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            followed.boundary()
            return None
        evaluated = _then(closure, followed.boundary)
        if "closure" in kwargs:
            return args, {**kwargs, "closure": evaluated}
        return (args[0], evaluated, *args[2:]), kwargs


def _then(closure: Callable[[], Any], after: Callable[[], None]) -> Callable[[], Any]:
    def evaluate() -> Any:
        loss = closure()
        after()
        return loss

    return evaluate


class FollowedOptimizer:
    """One optimizer, from its first step to its profile."""

    def __init__(self, optimizer: torch.optim.Optimizer, request: JobRequest[Profile]) -> None:
        self._optimizer = weakref.ref(optimizer)
        self._request = request
        self._members = members_of(optimizer.param_groups, None)
        self._tensors = [m.tensor for m in self._members if m.tensor.requires_grad]
        self._asked = request.asked_optimizer(type(optimizer).__name__, self._tensors)
        self._look: PassCount | None = None
        self._observer: Observer | None = None
        self._profiler: Profiler | None = None
        self._watch: native.BackwardWatch | None = None
        self._passes_per_gradient = self._passes_per_step = 1
        self._passes = 0  # in this step
        self._had_all_us: float | None = None  # of a step in which too many passes began

    def boundary(self) -> None:
        """All gradients of a step are there."""
        if self._observer is None or self._profiler is None:
            self._prepare()
            return
        if not self._observer.collector.any():
            return  # nothing came, or all is measured and collecting has ended
        self._profiler.begin_boundary()
        whole = self._end_step(self._observer)
        if whole:
            self._profiler.end_boundary(None)
        else:
            self._profiler.skip_step()
        self._asked.end_boundary(None)
        if self._profiler.complete:
            self._finish(self._observer, self._profiler)

    def detach(self) -> None:
        """Removes all hooks."""
        for attached in (self._look, self._watch, self._profiler, self._observer):
            if attached is not None:
                attached.detach()

    def _prepare(self) -> None:
        optimizer = self._optimizer()
        if self._look is None:
            self._look = PassCount(self._tensors)
        elif self._look.of_gradient and optimizer is not None:
            self._look.detach()
            self._passes_per_gradient = self._look.of_gradient
            self._passes_per_step = self._look.total
            self._observer = Observer(self._members, self._passes_per_gradient, watch_forward=True)
            warmup_steps = self._request.warmup_steps - _LOOKS
            self._profiler = Profiler(self._observer, optimizer, warmup_steps, self._request.steps)
            self._watch = native.BackwardWatch(self._on_pass)
        else:
            return
        self._asked.end_boundary(None)

    def _on_pass(self) -> None:
        """The collector refuses gradients that were added to as often as it expects. Steps differ
        here, though: a loss scaler throws some away, the last one of an epoch may be shorter."""
        self._passes += 1
        observer = self._observer
        if observer is None or not observer.collector.complete():
            return
        if self._passes > self._passes_per_step or self._thrown_away(observer):
            if self._had_all_us is None:
                self._had_all_us = observer.collector.collected().backward_us
            observer.collector.set_passes_per_step(_ANY_NUMBER)

    def _thrown_away(self, observer: Observer) -> bool:
        first = observer.members[observer.collector.collected().order[0]].tensor.grad
        return first is None or not bool(first.any())

    def _end_step(self, observer: Observer) -> bool:
        """Whether it was one step, and the collector saw all of it."""
        had_all_us, self._had_all_us = self._had_all_us, None
        self._passes = 0
        whole = had_all_us is None or observer.collector.collected().backward_us == had_all_us
        observer.end_step()
        if had_all_us is not None:
            observer.collector.set_passes_per_step(self._passes_per_gradient)
        return whole

    def _finish(self, observer: Observer, profiler: Profiler) -> None:
        self.detach()
        alone = SingleRank()
        profile = profiler.profile(alone, observer.members)
        tensors = [member.tensor for member in observer.members]
        self._asked.take(renamed(profile, tensors, observer.roots), alone)
