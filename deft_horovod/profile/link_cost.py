"""What a link costs, fitted from messages that really travelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from deft_horovod.profile.profile import LinkCost, LinkSample

_Numbers = NDArray[np.float64]

_SHORTEST_US: Final = 1e-3  # no message is faster; keeps shares finite
_EXACT: Final = 1e-9  # differences below this share are rounding
_REWEIGHTINGS: Final = 10
_TOLERATED_SPREADS: Final = 2.0  # medians of the absolute deviations; about 1.35 sigma


@dataclass(frozen=True)
class Sample:
    """One message: its size, when it was handed to the link, when it was done."""

    size_bytes: int
    sent_us: float
    done_us: float


def service_times_us(samples: Sequence[Sample]) -> list[float]:
    """The time each message kept the link busy, in order of completion.

    A link works on one message after the other, so a message is served from the moment it was
    sent or its predecessor was done, whichever is later.
    """
    times = []
    free_us = 0.0
    for sample in sorted(samples, key=lambda s: s.done_us):
        times.append(sample.done_us - max(sample.sent_us, free_us))
        free_us = sample.done_us
    return times


def fit_link(samples: Sequence[Sample]) -> LinkCost | None:
    """Least squares of ``alpha + beta * bytes``, neither below zero; None without samples."""
    if not samples:
        return None
    ordered = sorted(samples, key=lambda s: s.done_us)
    sizes = np.array([float(s.size_bytes) for s in ordered])
    times = np.maximum(np.array(service_times_us(samples)), 0.0)
    mean_size, mean_time = float(sizes.mean()), float(times.mean())
    spread = float(((sizes - mean_size) ** 2).sum())
    if spread == 0.0:
        return LinkCost(alpha_us=0.0, beta_us_per_byte=mean_time / max(mean_size, 1.0))
    beta = max(0.0, float(((sizes - mean_size) * (times - mean_time)).sum()) / spread)
    alpha = mean_time - beta * mean_size
    if alpha < 0.0:  # the best line through the origin
        alpha, beta = 0.0, float((sizes * times).sum() / (sizes**2).sum())
    return LinkCost(alpha_us=alpha, beta_us_per_byte=beta)


def fit_samples(samples: Sequence[LinkSample]) -> LinkCost | None:
    """``alpha + beta * bytes`` through the medians of each size, neither below zero.

    Links are no exact lines. What counts is the square of how far off a time is over the time: a
    plan adds times up, so that large messages matter more; but the larger they are, the more they
    scatter. Times that stay far off say less (Huber's weights). None without samples.
    """
    if not samples:
        return None
    sizes = np.array([float(sample.size_bytes) for sample in samples])
    times = np.maximum([sample.time_us for sample in samples], _SHORTEST_US)
    weights = 1.0 / times
    cost = _weighted_line(sizes, times, weights)
    for _ in range(_REWEIGHTINGS):
        off = np.abs(cost.alpha_us + cost.beta_us_per_byte * sizes - times) / np.sqrt(times)
        tolerated = _TOLERATED_SPREADS * float(np.median(off))
        if not tolerated > _EXACT:
            break
        cost = _weighted_line(
            sizes, times, weights * np.minimum(1.0, tolerated / np.maximum(off, _EXACT))
        )
    return cost


def residual(samples: Sequence[LinkSample], cost: LinkCost) -> float:
    """The root mean square of (measured - fitted) / fitted."""
    if not samples:
        return 0.0
    fitted = np.maximum([cost.time_us(s.size_bytes) for s in samples], _SHORTEST_US)
    measured = np.maximum([s.time_us for s in samples], _SHORTEST_US)
    return float(np.sqrt(np.mean(((measured - fitted) / fitted) ** 2)))


def _weighted_line(sizes: _Numbers, times: _Numbers, weights: _Numbers) -> LinkCost:
    """The best line with neither part below zero."""
    total = float(weights.sum())
    mean_size, mean_time = float(weights @ sizes) / total, float(weights @ times) / total
    spread = float(weights @ (sizes - mean_size) ** 2)
    if spread <= _EXACT * float(weights @ sizes**2):  # one size: all of it is bytes
        return LinkCost(alpha_us=0.0, beta_us_per_byte=mean_time / max(mean_size, 1.0))
    beta = float(weights @ ((sizes - mean_size) * (times - mean_time))) / spread
    alpha = mean_time - beta * mean_size
    if beta < 0.0:
        alpha, beta = mean_time, 0.0
    elif alpha < 0.0:
        alpha, beta = 0.0, float(weights @ (sizes * times)) / float(weights @ sizes**2)
    return LinkCost(alpha_us=alpha, beta_us_per_byte=beta)
