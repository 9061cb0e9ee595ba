"""Drift: noticing that a plan was made for times that are no longer true.

Two numbers are watched, each as a median over a run of steps: the step time, and how long the links
are busy for a byte. The first run of steps with a plan sets the reference. A change that has lasted
for a run calls for a new plan, once there is time to measure again.
"""

from __future__ import annotations

import logging
from statistics import median
from typing import Final

from deft_horovod.peers import stock
from deft_horovod.runtime.decide.measuring_debt import MeasuringDebt
from deft_horovod.runtime.follower import Follower, Wish
from deft_horovod.runtime.reduce.installed import Boundary
from deft_horovod.runtime.reduce.planned import PlannedReducer

_LOG: Final = logging.getLogger("deft_horovod")


class Drift(Follower[Boundary]):
    """Compares run after run with the first one."""

    def __init__(self, share: float, steps: int, debt: MeasuringDebt) -> None:
        self._share = share
        self._debt = debt
        self.steps = steps  # of a run
        self._reference: dict[str, float] = {}
        self._step_us: list[float] = []
        self._busy = (0, 0)  # microseconds and bytes when the run began
        self.reason = ""

    def restart(self) -> None:
        """A new plan."""
        self._reference.clear()
        self._step_us.clear()
        self._busy = (0, 0)
        self.reason = ""

    def end_boundary(self, at: Boundary) -> Wish:
        """Looks once the last phase has a profile to differ from."""
        if not (at.settled and at.profiled):
            return Wish.NOTHING
        before = self.reason
        drifted = self._seen(at.step_us, at.planned)
        if drifted and not before:
            _LOG.warning("deft_horovod: rank %d: %s", stock.rank(), self.reason)
        return Wish.MEASURE_AGAIN if drifted else Wish.NOTHING

    def _seen(self, step_us: float, planned: PlannedReducer | None) -> bool:
        """One more step. True once a run differs by more than the share allows."""
        if step_us <= 0.0:
            return bool(self.reason)
        self._step_us.append(step_us)
        if len(self._step_us) >= self.steps:
            self._compare({"step time": median(self._step_us), **self._link_time(planned)})
            self._step_us.clear()
        return bool(self.reason)

    def _link_time(self, planned: PlannedReducer | None) -> dict[str, float]:
        if planned is None:
            return {}
        seen = planned.sent()
        busy_us, sent = sum(s.busy_us for s in seen), sum(s.bytes for s in seen)
        before, self._busy = self._busy, (busy_us, sent)
        moved = sent - before[1]
        return {"link time a byte": (busy_us - before[0]) / moved} if moved > 0 else {}

    def _compare(self, now: dict[str, float]) -> None:
        for what, value in now.items():
            before = self._reference.setdefault(what, value)
            low, high = sorted((value, before))
            if low > 0.0 and high / low - 1.0 > self._share and self._debt.paid:
                self.reason = f"{what} changed by {100 * (value / before - 1.0):+.0f} %"
