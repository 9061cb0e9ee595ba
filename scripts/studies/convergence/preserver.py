"""How well the Preserver foresees what late updates cost, on the runs of the convergence study.

The product's own formula is given what it would know: the gradients of the first fifth of each
synchronous run. Its constants are those of all tasks; beside them stands what the other tasks alone
would have given, so that no task is judged by itself.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from deft_horovod.plan import Staleness
from deft_horovod.preserver.budget import DEFAULT_BUDGET
from deft_horovod.preserver.cost import Gradients, Lateness, cost, lateness
from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.report import Cell, Outcomes, Setting, by_setting
from scripts.studies.convergence.tasks import TASKS

_JUDGED: Final = ("none", "own_and_previous", "local")
_WORST: Final = 1000.0  # a loss; diverged runs count as this


@dataclass(frozen=True)
class Rung:
    """What `auto` may do, and the tenths of synchronous training that it is judged by."""

    name: str
    arm: Arm
    first: int
    past: int


BEGINNING: Final = 0, 2  # tenths
# With `max_delay=1`, the latest first.
FROM_THE_START: Final = (
    Rung("all late", Arm(-1, 1, 1, "local"), *BEGINNING),
    Rung("half late", Arm(2, 1, 1, "local"), *BEGINNING),
)


@dataclass(frozen=True)
class Trial:
    """One late arm in one setting, over its seeds."""

    setting: Setting
    arm: Arm
    loss: float  # mean logarithm of the loss over the synchronous one
    half: float  # of its 95 % interval
    turn: float  # mean
    expected: float  # by the Preserver

    @property
    def loses(self) -> bool:
        """Beyond chance."""
        return self.loss - self.half > 0.0


def late_share(task: str, parts: int) -> float:
    """The share of the bytes that the first `parts` have."""
    if parts < 0:
        return 1.0
    named = [(name, p.numel()) for name, p in TASKS[task].model().named_parameters()]
    mine = [size for name, size in named if name.startswith(TASKS[task].first[:parts])]
    return sum(mine) / sum(size for _, size in named)


def lateness_of(task: str, arm: Arm) -> Lateness:
    """As that of a plan."""
    return lateness_at(late_share(task, arm.late), arm)


def lateness_at(share: float, arm: Arm) -> Lateness:
    """Where this share of the bytes is late."""
    late = round(1e6 * share)
    kinds = (
        Staleness(delay=arm.delay, merged=arm.merge, bytes=late),
        Staleness(delay=0, merged=1, bytes=1_000_000 - late),
    )
    return lateness(kinds)


def turn_of(outcome: Mapping[str, Any], workers: int, first: int, past: int) -> float:
    """What a guard would have measured in these tenths of this training."""
    seen = outcome["statistics"]
    own, average, change = (
        statistics.fmean(seen[name][first:past])
        for name in ("own_square", "average_square", "change_square")
    )
    return Gradients(own, average, change, ranks=workers, steps=past - first).turn


def _cell(arm: Arm, outcomes: Mapping[int, Mapping[str, Any]]) -> Cell:
    return Cell(
        arm,
        {seed: min(float(o["loss"]), _WORST) for seed, o in outcomes.items()},
        {seed: float(o["accuracy"]) for seed, o in outcomes.items()},
    )


def trials(outcomes: Outcomes) -> list[Trial]:
    """Where synchronous training converges."""
    found = []
    for setting, arms in by_setting(outcomes).items():
        exact = arms.pop(Arm(), {})
        if not exact or not all(math.isfinite(float(o["loss"])) for o in exact.values()):
            continue
        turns = {s: turn_of(outcome, setting.workers, *BEGINNING) for s, outcome in exact.items()}
        for arm, of_seeds in arms.items():
            both = of_seeds.keys() & exact.keys()
            if arm.correction not in _JUDGED or arm.below < 1.0 or not both:
                continue
            loss, half = _cell(arm, of_seeds).against(_cell(Arm(), exact))
            turn = statistics.fmean(turns[seed] for seed in both)
            expected = cost(lateness_of(setting.task, arm), turn, arm.correction)
            found.append(Trial(setting, arm, loss, half, turn, expected))
    return found


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's."""
    if len(one) < 3:
        return math.nan
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values: Sequence[float]) -> list[float]:
    """Equal values share the mean of their places."""
    ordered = sorted(values)
    places: dict[float, list[int]] = defaultdict(list)
    for place, value in enumerate(ordered):
        places[value].append(place)
    return [statistics.fmean(places[value]) for value in values]


def constants(of: Sequence[Trial]) -> dict[str, float]:
    """Of each correction what delay costs at a turn of 1. Medians, as some diverge."""
    found = {}
    for correction in _JUDGED:
        mine = [t for t in of if t.arm.correction == correction and t.arm.merge == 1]
        late = [lateness_of(t.setting.task, t.arm).delayed for t in mine]
        costs = [t.loss / (t.turn * share) ** 2 for t, share in zip(mine, late, strict=True)]
        found[correction] = statistics.median(costs) if costs else math.nan
    return found


def auto(
    outcomes: Outcomes, ladder: Sequence[Rung] = FROM_THE_START
) -> list[tuple[Setting, Cell, Cell, Counter[str]]]:
    """What `auto` comes to: for each run the first of the ladder that is within the budget, else
    synchronous. For each setting: synchronous, auto, and what it chose."""
    found = []
    for setting, arms in by_setting(outcomes).items():
        exact = arms.get(Arm(), {})
        if not exact or not all(math.isfinite(float(o["loss"])) for o in exact.values()):
            continue
        chosen: dict[int, Mapping[str, Any]] = {}
        said: Counter[str] = Counter()
        for seed in exact:
            chosen[seed], name = _climb(setting, arms, seed, ladder)
            said[name] += 1
        found.append((setting, _cell(Arm(), exact), _cell(Arm(), chosen), said))
    return found


def _climb(
    setting: Setting,
    arms: Mapping[Arm, Mapping[int, Mapping[str, Any]]],
    seed: int,
    ladder: Sequence[Rung],
) -> tuple[Mapping[str, Any], str]:
    exact = arms[Arm()][seed]
    for rung in ladder:
        trained = arms.get(rung.arm, {}).get(seed)
        if trained is None:
            continue
        turn = turn_of(exact, setting.workers, rung.first, rung.past)
        if cost(lateness_of(setting.task, rung.arm), turn, "local") <= DEFAULT_BUDGET:
            return trained, rung.name
    return exact, "synchronous"
