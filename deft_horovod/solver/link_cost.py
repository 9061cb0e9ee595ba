"""What a link costs, fitted from messages that really travelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deft_horovod.profile import LinkCost


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
