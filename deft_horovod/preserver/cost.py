"""Preserver: what late updates cost, and how many of them are affordable. Pure.

DeFT has a part of this name, whose formula is not public; this one is ours. It rests on one number
of synchronous training, the *turn* of the gradient: how much the gradient changes from one step to
the next, noise of the batches taken out, as a share of the gradient itself. A late gradient is
wrong by about that much for each step of delay. What that costs, and what fewer updates cost, was
calibrated by real training; docs/internals/preserver.md has formula, numbers, and how far to trust
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from deft_horovod.plan import Staleness

# Of a gradient's square: less is not told from noise.
_LEAST_SIGNAL: Final = 1e-3
# Beyond any that was seen; gradients that are all but zero turn by anything.
_LARGEST_TURN: Final = 1e3
# Increase of the loss, as a logarithm: at a turn of 1 with everything one step late, and where
# nothing but long sums is applied. The first are about what the convergence study finds, the second
# are set by hand (docs/internals/preserver.md); a correction that was not measured counts as none.
_DELAYED: Final[Mapping[str, float]] = MappingProxyType(
    {"local": 0.03, "none": 0.3, "own_and_previous": 0.15}
)
_MERGED: Final[Mapping[str, float]] = MappingProxyType(
    {"local": 0.1, "none": 0.3, "own_and_previous": 0.15}
)


@dataclass(frozen=True)
class Gradients:
    """Means over some synchronous steps, of the same parameters."""

    own_square: float  # of one rank's gradient
    average_square: float  # of the ranks' averaged one
    change_square: float  # of what changed in the average since the step before
    ranks: int
    steps: int  # that were looked at

    @property
    def noise(self) -> float:
        """Of the average: what batches add to its square. A rank's own gradient has `ranks` times
        as much, so the two squares tell it apart from the rest."""
        more = max(0.0, self.own_square - self.average_square)
        return more / (self.ranks - 1) if self.ranks > 1 else 0.0

    @property
    def turn(self) -> float:
        """Square of the change of the gradient in a step, over that of the gradient."""
        signal = max(self.average_square - self.noise, _LEAST_SIGNAL * self.average_square)
        # Two averages have noise of their own each.
        drift = max(0.0, self.change_square - 2.0 * self.noise)
        return min(drift / signal, _LARGEST_TURN) if signal > 0.0 else 0.0


@dataclass(frozen=True)
class Lateness:
    """Of a plan. Zero: everything is in time."""

    # Share of the bytes, counted by the root of the steps of delay: errors of parts that are late
    # together add up, and their square is what costs.
    delayed: float = 0.0
    merged: float = 0.0  # share of the updates that are missing, as they come as one

    @property
    def any(self) -> bool:
        """Whether anything is late or merged."""
        return self.delayed > 0.0 or self.merged > 0.0


def lateness(kinds: Iterable[Staleness]) -> Lateness:
    """How late a plan is, of its staleness."""
    total = delayed = merged = 0.0
    for kind in kinds:
        total += kind.bytes
        delayed += kind.bytes * math.sqrt(kind.delay)
        merged += kind.bytes * (1.0 - 1.0 / kind.merged)
    return Lateness(delayed / total, merged / total) if total else Lateness()


def cost(late: Lateness, turn: float, correction: str) -> float:
    """Expected increase of the loss, as a logarithm: for small ones the share of it."""
    return _of(_DELAYED, correction) * (turn * late.delayed) ** 2 + _merging(late, correction)


def affordable_share(
    budget: float, turn: float, correction: str, delay: int = 1, merged: int = 1
) -> float:
    """Of the bytes, that may be so late within the budget; above 1: all, and more."""
    whole = Lateness(math.sqrt(delay), 1.0 - 1.0 / merged)
    rarer = _merging(whole, correction)
    later = cost(whole, turn, correction) - rarer
    if later > 0.0:  # later share^2 + rarer share = budget, by the root that loses no digits
        root = math.sqrt(rarer**2 + 4.0 * later * budget)
        return 2.0 * budget / (rarer + root) if root > 0.0 else 0.0
    return budget / rarer if rarer > 0.0 else math.inf


def affordable_turn(budget: float, late: Lateness, correction: str) -> float:
    """The turn up to which something as late as that stays within the budget."""
    left = max(0.0, budget - _merging(late, correction))
    price = _of(_DELAYED, correction) * late.delayed**2
    if price > 0.0:
        return math.sqrt(left / price)
    return math.inf if budget >= _merging(late, correction) else 0.0


def _merging(late: Lateness, correction: str) -> float:
    return _of(_MERGED, correction) * late.merged


def _of(harm: Mapping[str, float], correction: str) -> float:
    return harm.get(correction, harm["none"])
