"""Runs as trials: what each arm cost in each setting, and what each judge says of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deft_horovod.preserver.cost import cost
from scripts.studies.convergence.preserver import BEGINNING, lateness_at, turn_of
from scripts.studies.convergence.training import first_late
from scripts.studies.formats.noninferior import difference
from scripts.studies.formats.training import final_loss
from scripts.studies.judge.arms import ARMS, EXACT_ARM
from scripts.studies.judge.judge import Trial, in_margins
from scripts.studies.judge.probe import Error
from scripts.studies.judge.study import Setting, exact_of
from scripts.studies.judge.tasks import JUDGED
from scripts.studies.judge.training import Run

# What is measured by one more backward, and, of late arms alone, what the Preserver expects.
MEASURED: Final = tuple(Error.__dataclass_fields__)
TURN: Final = "turn"
_TENTHS: Final = 10

Outcome = Mapping[str, Any]


def trials(outcomes: Mapping[Run, Outcome]) -> list[Trial]:
    """Where exact training converges, of seeds that the arm and exact training have."""
    found = []
    for setting in dict.fromkeys(map(Setting.of, outcomes)):
        mine = {run: one for run, one in outcomes.items() if Setting.of(run) == setting}
        for name, arm in ARMS.items():
            if name == EXACT_ARM:
                continue
            runs = {r: one for r, one in mine.items() if r.arm == name and exact_of(r) in mine}
            exact = {r.seed: mine[exact_of(r)] for r in runs}
            losses = {r.seed: final_loss(one["losses"]) for r, one in runs.items()}
            exact_losses = {seed: final_loss(one["losses"]) for seed, one in exact.items()}
            compared = difference(losses, exact_losses, setting.margin)
            if compared is None:
                continue
            scores = _measured(list(runs.values()))
            if arm.late.late and not arm.rounds:
                turns = [_expected(r, one, exact[r.seed]) for r, one in runs.items()]
                scores[TURN] = statistics.fmean(turns)
            halves = _halves(losses, exact_losses, setting.margin)
            found.append(Trial(setting, name, compared, scores, halves))
    return found


def _halves(
    losses: Mapping[int, float], exact: Mapping[int, float], margin: float
) -> tuple[float, float]:
    """The harm that every other seed shows, and the rest."""
    seeds = sorted(losses)
    first, other = (
        statistics.fmean(in_margins(math.log(losses[s] / exact[s]), margin) for s in half)
        for half in (seeds[::2], seeds[1::2])
    )
    return first, other


def _measured(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Means over probes and seeds."""
    probes = [probe for one in outcomes for probe in one["errors"]]
    return {name: _mean([abs(probe[name]) for probe in probes]) for name in MEASURED if probes}


def _mean(values: Sequence[float]) -> float:
    """Infinite if one is not a number: training is breaking down."""
    return statistics.fmean(values) if all(map(math.isfinite, values)) else math.inf


def _expected(run: Run, outcome: Outcome, exact: Outcome) -> float:
    """What the Preserver would have expected of it before anything was late."""
    late, task = ARMS[run.arm].late, JUDGED[run.task].task
    tenth = _TENTHS * first_late(late, task.steps, task.schedule) // task.steps
    first, past = BEGINNING if late.below == 1.0 else (tenth, tenth + 1)
    turn = turn_of(exact, run.workers, first, past)
    return cost(lateness_at(outcome["late_share"], late), turn, late.correction)
