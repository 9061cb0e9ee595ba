"""Non-inferiority: is an arm's loss higher than the exact one's by less than a margin? Pure.

For one setting: differences of logarithms of the losses, seed by seed, against the margin, by
Student's one-sided test. For all settings together: Holm's correction.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats


@dataclass(frozen=True)
class Difference:
    """Of an arm, over the seeds of one setting: logarithm of its loss over the exact one."""

    mean: float
    deviation: float
    seeds: int
    margin: float  # of the loss, such as 0.01

    @property
    def upper(self) -> float:
        """The mean is below this with 95 % confidence."""
        error = self.deviation / math.sqrt(self.seeds)
        return self.mean + float(stats.t.ppf(0.95, self.seeds - 1)) * error

    @property
    def p_value(self) -> float:
        """Of the hypothesis that the arm is worse by the margin or more."""
        error = self.deviation / math.sqrt(self.seeds)
        distance = math.log1p(self.margin) - self.mean
        if not math.isfinite(distance):
            return 1.0
        if error == 0.0:
            return 0.0 if distance > 0.0 else 1.0
        return float(stats.t.sf(distance / error, self.seeds - 1))

    @property
    def p_value_of_harm(self) -> float:
        """Of the hypothesis that the arm is not worse at all."""
        error = self.deviation / math.sqrt(self.seeds)
        if not math.isfinite(self.mean):
            return 0.0
        if error == 0.0:
            return 0.0 if self.mean > 0.0 else 1.0
        return float(stats.t.sf(self.mean / error, self.seeds - 1))


def difference(
    losses: Mapping[int, float], exact: Mapping[int, float], margin: float
) -> Difference | None:
    """By seed. None: nothing can be compared, as exact training diverged too, or fewer than two
    seeds were trained."""
    seeds = sorted(losses.keys() & exact.keys())
    if len(seeds) < 2 or not all(math.isfinite(exact[seed]) for seed in seeds):
        return None
    if not all(math.isfinite(losses[seed]) for seed in seeds):
        return Difference(math.inf, 0.0, len(seeds), margin)
    found = [math.log(losses[seed] / exact[seed]) for seed in seeds]
    return Difference(statistics.fmean(found), statistics.stdev(found), len(seeds), margin)


def holm(p_values: Sequence[float], level: float, untested: int = 0) -> list[bool]:
    """Which hypotheses are rejected, so that all of them together err with this probability, with
    those that are yet to be tested."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected = [False] * len(p_values)
    for rank, i in enumerate(order):
        if p_values[i] > level / (len(p_values) + untested - rank):
            break
        rejected[i] = True
    return rejected


def seeds_needed(deviation: float, margin: float, level: float, power: float) -> int:
    """So that an arm that is no worse is found non-inferior with this probability. `level`: of one
    test."""
    effect = math.log1p(margin)
    for seeds in range(3, 1000):
        threshold = stats.t.ppf(1.0 - level, seeds - 1)
        shift = effect / deviation * math.sqrt(seeds)
        if stats.nct.sf(threshold, seeds - 1, shift) >= power:
            return seeds
    return 1000
