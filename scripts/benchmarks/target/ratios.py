"""Ratios of several seeds: their geometric mean, and where the true one lies. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from scipy import stats

_CONFIDENCE: Final = 0.95
_FEWEST_TO_TRIM: Final = 4


@dataclass(frozen=True)
class Mean:
    """Geometric, with Student's interval of the logarithms."""

    value: float
    low: float
    high: float


def mean_of(ratios: Sequence[float]) -> Mean:
    """Of one seed nothing is known but its value."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return Mean(math.exp(middle), 0.0, math.inf)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    reach = float(stats.t.ppf(0.5 + _CONFIDENCE / 2.0, len(logs) - 1)) * error
    return Mean(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))


def trimmed(ratios: Sequence[float]) -> float | None:
    """The geometric mean without the largest and the smallest, as MLPerf drops the fastest and the
    slowest training. None: there are too few."""
    if len(ratios) < _FEWEST_TO_TRIM:
        return None
    return mean_of(sorted(ratios)[1:-1]).value


def as_times(ratio: float) -> str:
    return f"{ratio:.2f}"


def as_more(ratio: float) -> str:
    """By how many percent it is above one."""
    return f"{ratio - 1.0:+.1%}"


def in_words(ratios: Sequence[float], show: Callable[[float], str] = as_times) -> str:
    """The mean, and its interval where there is one."""
    mean = mean_of(ratios)
    interval = f" ({show(mean.low)} .. {show(mean.high)})" if len(ratios) > 1 else ""
    return f"{show(mean.value)}{interval}"
