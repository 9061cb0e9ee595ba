"""Measures training steps while the job runs: which stage takes how long, when each gradient is
ready, when each parameter is used first.

In the first steps modules are only found out, through the observer's watch. Then so many steps are
measured: all of them as a whole and gradient by gradient, the first few also module by module.
All of it goes by the number of boundaries, so every rank is through at the same one.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import torch
from torch import nn

from deft_horovod.profile import LinkProfile, Profile, Tensor
from deft_horovod.profile.aggregate import RankReport, aggregate
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.follower import Follower, Wish
from deft_horovod.runtime.measure.gradient_timestamps import GradientTimestamps
from deft_horovod.runtime.measure.module_timer import ModuleTimer
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.rank_report import rank_report
from deft_horovod.runtime.measure.step_record import (
    Pass,
    StepRecord,
    StepTimes,
    backward_began,
    step_times,
)
from deft_horovod.runtime.measure.timestamps import Clock, HostClock, Moment, clock_for
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.named_parameters import NamedParameter, dtype_name

# Beyond these, the oldest step is read and the oldest times are forgotten.
_UNREAD_STEPS: Final = 64
_KEPT_STEPS: Final = 1000
# In at most so many steps, and a third of all, modules are timed: that costs the most.
_TIMED_STEPS: Final = 3


class Profiler(Follower[object]):
    """Watches the steps of one optimizer, until it is complete."""

    def __init__(
        self,
        observer: Observer,
        inner: torch.optim.Optimizer,
        warmup_steps: int,
        steps: int,
        clock: Clock | None = None,
    ) -> None:
        self._observer = observer
        self._tensors = [member.tensor for member in observer.members]
        self._clock = clock_for(self._tensors) if clock is None else clock
        # The first step has no beginning, and shows which modules there are.
        self._warmup_steps = max(1, warmup_steps)
        self._steps = steps
        self._boundaries = 0
        self._modules: tuple[nn.Module, ...] = ()
        self._timer: ModuleTimer | None = None
        self._gradients: GradientTimestamps | None = None
        self._unread: deque[StepRecord] = deque()
        self._times: deque[StepTimes] = deque(maxlen=_KEPT_STEPS)
        self._asked: Moment | None = None
        self._done: Moment | None = None
        self._passes: list[Pass] = []
        self._updates: list[Moment] = []
        # These hooks know the lists, and keep no reader of them alive.
        now, passes, updates = self._clock.now, self._passes, self._updates
        watch = native.BackwardWatch(lambda: passes.append(Pass(native.steady_us(), now())))
        updated = inner.register_step_post_hook(lambda *_: updates.append(now()))
        self._attached: list[Callable[[], None]] = [watch.detach, updated.remove]
        weakref.finalize(self, _detach, self._attached).atexit = False

    @property
    def complete(self) -> bool:
        """Whether all steps were measured; then no hook is left."""
        return self._boundaries >= self._warmup_steps + self._steps

    def begin_boundary(self) -> None:
        if not self.complete:
            self._asked = self._clock.now()

    def end_boundary(self, at: object) -> Wish:  # noqa: ARG002
        """The observer has ended its step."""
        if not self.complete:
            self._end_step()
        return Wish.NOTHING

    def _end_step(self) -> None:
        unfinished = self._take()
        self._read(_UNREAD_STEPS)
        self._count_boundary()
        began, self._done = self._done, self._clock.now()
        if unfinished is not None and began is not None:
            self._unread.append(unfinished(began, self._done))

    def _count_boundary(self) -> None:
        self._boundaries += 1
        if self._boundaries == self._warmup_steps:
            self._begin_measuring()
        elif self._boundaries == self._timed_until:
            self._time_only(self._observer.roots)
        if self.complete:
            self.detach()

    def skip_step(self) -> None:
        """It counts, but says nothing."""
        if not self.complete:
            self._asked = None
            self._end_step()

    def profile(
        self,
        agreement: Agreement,
        members: Sequence[NamedParameter],
        links: Sequence[LinkProfile] = (),
    ) -> Profile:
        """The profile of all ranks, the same on each; indices are those of `members`.

        All ranks call it at the same boundary. Where no rank measured a step it is the observer's
        first impression.
        """
        self._read(0)
        report = rank_report(agreement.rank, self._times, self._observer, members, self._modules)
        reports = [RankReport.from_json(t) for t in agreement.collect(report.to_json())]
        text = None
        if agreement.deciding:
            if any(r.steps for r in reports):
                text = aggregate(reports, tensors_of(members), links).to_json()
            else:
                seen = self._observer.profile(members, None)
                text = seen.model_copy(update={"links": tuple(links)}).to_json()
        profile = Profile.from_json(agreement.share(text))
        agreement.require_equal({"profile": profile.hash()})
        return profile

    def detach(self) -> None:
        """Removes all hooks; what was measured stays."""
        _detach(self._attached)

    @property
    def _timed_until(self) -> int:
        return self._warmup_steps + min(_TIMED_STEPS, math.ceil(self._steps / 3))

    def _begin_measuring(self) -> None:
        self._observer.stop_watching()
        gates = self._observer.gates(self._observer.members)
        owners = self._observer.owners
        # A module may be empty (len() is 0) or refuse len(), so none is asked for its truth.
        met = [*owners, *(gate for gate in gates if gate is not None)]
        self._modules = tuple(dict.fromkeys(met))
        self._time_only(self._modules)
        if not isinstance(self._clock, HostClock):
            self._gradients = GradientTimestamps(self._tensors, self._clock)
            self._attached.append(self._gradients.detach)

    def _time_only(self, modules: Sequence[nn.Module]) -> None:
        if self._timer is not None:
            self._timer.detach()
        self._timer = ModuleTimer(modules, self._clock)
        self._attached.append(self._timer.detach)

    def _take(self) -> Callable[[Moment, Moment], StepRecord] | None:
        """What the step that ends has left behind, if it was measured and whole."""
        calls = self._timer.take() if self._timer is not None else None
        gradients = self._gradients.take() if self._gradients is not None else {}
        collected, asked = self._observer.last, self._asked
        backward = backward_began(self._passes, collected) if collected is not None else None
        updated = self._updates[-1] if self._updates else None
        self._passes.clear()
        native.BackwardWatch.listen()
        self._updates.clear()
        self._asked = None
        if calls is None or collected is None or backward is None or asked is None:
            return None
        timed = len(self._modules) if self._boundaries < self._timed_until else None
        return lambda began, done: StepRecord(
            began, updated, backward, asked, done, collected, gradients, calls, timed
        )

    def _read(self, left: int) -> None:
        """Reads the moments of the oldest steps, until no more than `left` are unread."""
        while len(self._unread) > left:
            record = self._unread.popleft()
            self._clock.wait_for(record.done)
            self._times.append(step_times(record, self._clock))


def _detach(attached: list[Callable[[], None]]) -> None:
    for detach in attached:
        detach()
    attached.clear()


def tensors_of(members: Sequence[NamedParameter]) -> tuple[Tensor, ...]:
    """The members as a profile names them."""
    return tuple(
        Tensor(
            name=member.name,
            shape=tuple(member.tensor.shape),
            dtype=dtype_name(member.tensor),
        )
        for member in members
    )
