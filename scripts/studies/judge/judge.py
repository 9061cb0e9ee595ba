"""Judges: how well a number that is measured while training tells which arms do harm. Pure.

The harm of an arm in a setting is the mean logarithm of its loss over that of exact training with
the same seeds, in units of the margin.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from scripts.studies.convergence.preserver import rank_correlation
from scripts.studies.formats.noninferior import Difference
from scripts.studies.judge.study import Setting

LEVEL: Final = 0.05
VETOED: Final = 0.9  # of the harmful arms, at the limit
WORST: Final = 1000.0  # margins; diverged runs count as this


@dataclass(frozen=True)
class Trial:
    """One arm in one setting."""

    setting: Setting
    arm: str
    difference: Difference
    scores: dict[str, float]  # by judge
    halves: tuple[float, float] = (math.nan, math.nan)  # harm by every other seed, by the rest

    @property
    def harm(self) -> float:
        """In margins."""
        return in_margins(self.difference.mean, self.difference.margin)

    @property
    def harmful(self) -> bool:
        """By more than the margin, and beyond chance."""
        return self.harm > 1.0 and self.difference.p_value_of_harm < LEVEL

    @property
    def harmless(self) -> bool:
        """By less than the margin, beyond chance."""
        return self.difference.p_value < LEVEL

    @property
    def verdict(self) -> str:
        if self.harmful:
            return "harmful"
        return "harmless" if self.harmless else "not decided"


def in_margins(log_ratio: float, margin: float) -> float:
    return min(log_ratio / math.log1p(margin), WORST)


def correlation(trials: Sequence[Trial], judge: str) -> float:
    """Of ranks, of those that the judge has a score for."""
    judged = [t for t in trials if judge in t.scores]
    return rank_correlation([t.scores[judge] for t in judged], [t.harm for t in judged])


def ceiling(trials: Sequence[Trial]) -> float:
    """The correlation that a judge which knew the true harm would have with the harm that was seen,
    as seeds differ: by how well half of the seeds tell what the others say (Spearman and Brown)."""
    known = [t.halves for t in trials if all(map(math.isfinite, t.halves))]
    halves = rank_correlation([first for first, _ in known], [other for _, other in known])
    return math.sqrt(2.0 * halves / (1.0 + halves)) if halves > 0.0 else math.nan


def by_setting(trials: Sequence[Trial], of: Callable[[Sequence[Trial]], float]) -> float:
    """The mean over the settings, each by itself."""
    settings = dict.fromkeys(t.setting for t in trials)
    found = [of([t for t in trials if t.setting == s]) for s in settings]
    known = [one for one in found if math.isfinite(one)]
    return statistics.fmean(known) if known else math.nan


def limit(trials: Sequence[Trial], judge: str) -> float:
    """The highest at which so many of the harmful arms as wanted are vetoed; an arm is vetoed if
    its score is not below. Infinite where none is harmful."""
    scores = sorted(t.scores[judge] for t in trials if t.harmful and judge in t.scores)
    if not scores:
        return math.inf
    return scores[len(scores) - math.ceil(VETOED * len(scores))]


@dataclass(frozen=True)
class Vetoes:
    """At a limit."""

    harmful: int
    harmful_vetoed: int
    harmless: int
    harmless_vetoed: int

    @property
    def texts(self) -> tuple[str, str]:
        """Of the harmful, of the harmless."""
        return (
            f"{self.harmful_vetoed} of {self.harmful}",
            f"{self.harmless_vetoed} of {self.harmless}",
        )


def vetoes(trials: Sequence[Trial], judge: str, at: float) -> Vetoes:
    def vetoed(which: Callable[[Trial], bool]) -> tuple[int, int]:
        scores = [t.scores[judge] for t in trials if which(t) and judge in t.scores]
        return len(scores), sum(score >= at for score in scores)

    return Vetoes(*vetoed(lambda t: t.harmful), *vetoed(lambda t: t.harmless))
