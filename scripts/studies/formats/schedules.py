"""How the learning rate goes, beside the cosine of the convergence study."""

from __future__ import annotations

import math
from typing import Final

_WARM: Final = 0.05  # of all steps, in which the rate rises
_DECAY: Final = 0.2  # of all steps, in which it falls at the end
_DROPS: Final = (0.6, 0.85)  # where it becomes a tenth


def constant(done: float) -> float:
    return min(1.0, (done + _WARM / 10) / (_WARM * 1.1))


def warmup_stable_decay(done: float) -> float:
    """Constant until the last part of the steps, in which it falls to nothing."""
    return constant(done) * min(1.0, (1.0 - done) / _DECAY)


def dropping(done: float) -> float:
    """In steps."""
    drops: int = sum(done >= place for place in _DROPS)
    return constant(done) * 0.1**drops


def half_cosine(done: float) -> float:
    """Falls to nothing."""
    return constant(done) * 0.5 * (1.0 + math.cos(math.pi * done))
