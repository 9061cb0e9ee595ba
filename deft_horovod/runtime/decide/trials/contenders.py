"""Which candidates of `auto` take turns once more, because noise hides which one is the fastest.

A machine that does other work, too, makes the same step take longer now and then, and two rounds of
five steps may then say anything. Ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, stdev
from typing import Final

import numpy as np

from deft_horovod.peers import BASELINE

Who = tuple[str, bool]  # the policy, and whether its plan may be late

FEWEST_STEPS: Final = 8  # of fewer, nothing is known of the noise
_ERRORS: Final = 2.0  # of a difference that counts as one
_MOST: Final = 2  # beside the baseline
# Of normally distributed values: their deviation in ranges between quartiles, and the error of a
# median in errors of a mean.
_RANGE: Final = 1.349
_MEDIAN_ERROR: Final = math.sqrt(math.pi / 2.0)


@dataclass(frozen=True)
class StepTime:
    """Of one candidate."""

    us: float  # the median
    error_us: float  # of that; infinite: not known

    @classmethod
    def of(cls, rounds: Sequence[Sequence[float]]) -> StepTime:
        """Steps of a round share what else the machine did then, so rounds count as well. Where
        this rank has seen none, other ranks say how long they took."""
        steps = [us for one in rounds for us in one]
        if len(steps) < FEWEST_STEPS:
            return cls(median(steps) if steps else 0.0, math.inf)
        low, high = np.quantile(steps, (0.25, 0.75))
        error_us = _MEDIAN_ERROR * float(high - low) / _RANGE / math.sqrt(len(steps))
        seen = [one for one in rounds if one]
        if len(seen) > 1:
            medians = [median(one) for one in seen]
            error_us = max(error_us, stdev(medians) / math.sqrt(len(medians)))
        return cls(median(steps), error_us)


def contenders(times: Mapping[Who, StepTime], min_gain: float) -> list[Who]:
    """The baseline and those that may be the fastest. None where it is clear whether anything
    gains as much as is asked for, or where the noise is not known. Those of which it alone is not
    known had fewer turns, being too slow."""
    before = times[BASELINE, False]
    others = {who: time for who, time in times.items() if who != (BASELINE, False)}
    others = {who: time for who, time in others.items() if math.isfinite(time.error_us)}
    if not others or math.isinf(before.error_us):
        return []
    fastest = min(others.values(), key=lambda time: time.us)
    gap_us = abs(before.us * (1.0 - min_gain) - fastest.us)
    if gap_us >= _noise_us(before, fastest):
        return []
    near = [who for who, time in others.items() if time.us - fastest.us <= _noise_us(time, fastest)]
    return [(BASELINE, False), *sorted(near, key=lambda who: times[who].us)[:_MOST]]


def _noise_us(one: StepTime, other: StepTime) -> float:
    """Differences below this may be chance."""
    return _ERRORS * math.hypot(one.error_us, other.error_us)
