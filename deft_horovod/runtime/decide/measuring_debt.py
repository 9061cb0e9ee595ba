"""The debt that measuring makes, and how it is paid back.

A network that others use, too, changes again and again, and some scripts freeze other layers every
few steps. Measuring takes seconds, partly at stock Horovod's pace or without training, so a job
that followed every change could be slower than stock Horovod. So what measuring again has taken is
a debt, which training pays back with a twentieth of its time. Until then a drift is not followed,
and where other parameters train, the baseline runs, which needs no profile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from deft_horovod.comparison import BASELINES
from deft_horovod.peers import BASELINE, stock
from deft_horovod.runtime.follower import Follower, Wish
from deft_horovod.runtime.reduce.installed import Boundary

_LOG: Final = logging.getLogger("deft_horovod")

SHARE: Final = 0.05  # of the time, for measuring again and again


class MeasuringDebt(Follower[Boundary]):
    """Of one optimizer. What it measures at first is no debt, so the first change is followed."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self.waits = False  # something has changed and will be measured, the same on all ranks
        self._now_s = now_s
        self._owed_s = 0.0
        self._measured = 0  # times
        self._before_s = now_s()  # the last boundary
        self._settled = False  # at that time

    @property
    def paid(self) -> bool:
        """Whether there is time to measure again."""
        return self._owed_s <= 0.0

    def restart(self, *, measure: bool) -> None:
        """Everything is measured from now on, or else once the debt is paid."""
        if measure:
            self._measured += 1
        elif not self.waits and stock.rank() == 0:
            _LOG.warning(
                "deft_horovod: parameters change soon after they were measured, so %s runs until "
                "measuring has taken no more than %g%% of the time",
                BASELINES[BASELINE],
                100 * SHARE,
            )
        self.waits = not measure

    def end_boundary(self, at: Boundary) -> Wish:
        """Steps of the last phase pay back, all others are measured."""
        now_s = self._now_s()
        spent_s = now_s - self._before_s
        if at.settled and self._settled:
            self._owed_s = max(0.0, self._owed_s - SHARE * spent_s)
        elif self._measured > 1:
            self._owed_s += spent_s
        self._before_s, self._settled = now_s, at.settled
        return Wish.MEASURE_AGAIN if self.waits and self.paid else Wish.NOTHING
