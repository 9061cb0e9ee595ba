"""What the runs of the study of harm say, as Markdown."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from scripts.studies.convergence.preserver_report import table
from scripts.studies.judge.arms import ARMS, EXACT_ARM, IN_USE
from scripts.studies.judge.judge import (
    Trial,
    by_setting,
    ceiling,
    correlation,
    limit,
    vetoes,
)
from scripts.studies.judge.study import Setting
from scripts.studies.judge.training import Run
from scripts.studies.judge.trials import MEASURED, TURN, Outcome, trials

_HEAD: Final = """\
# What does the error of a gradient tell about harm?

Made by `python -m scripts.studies.judge.run report` from [study.json](study.json). What was asked
and how was fixed before: [protocol.md](protocol.md).

## What the arms cost

The loss over that of exact training, a mean over seeds. **Bold**: harmful, by more than the margin
and beyond chance. *Slanted*: not decided. All others are harmless: higher by less than the margin,
beyond chance."""
_ERRORS: Final = """\
## What gradients were wrong by

The norm of the error over that of the gradient, a mean over layers, probes and seeds, in
percent."""
_JUDGES: Final = """\
## What judges say

Each arm in each setting has a harm and a score. *Correlation* is that of their ranks: of all
together, and the mean of each setting by itself. The limit of a judge is the highest at which it
vetoes 90 % of the harmful arms of the tasks that are not held out. The last row says what noise
leaves to reach: how well half of the seeds tell the harm that the other half sees."""
_WORDS: Final[Mapping[str, str]] = {
    "whole": "error / gradient, of all parameters",
    "layers": "error / gradient, mean of the layers",
    "worst": "error / gradient, of the worst layer",
    "noise": "error / what batches add",
    "along": "the error's part along the gradient",
    "rest": "rest / gradient",
    TURN: "what the Preserver expects by the turn (late arms that are not rounded)",
}

_CEILING: Final = "*a judge that knew the true harm would reach, by the noise of what was seen*"


def page(outcomes: Mapping[Run, Outcome], settings: Sequence[Setting]) -> str:
    found = [t for t in trials(outcomes) if t.setting in settings]
    known, new = ([t for t in found if t.setting.held_out == held] for held in (False, True))
    parts = [_HEAD, _losses(found), _ERRORS, _errors(found), _JUDGES]
    for title, arms in (("All arms", tuple(ARMS)), ("Arms in use", IN_USE)):
        of_these = [[t for t in some if t.arm in arms] for some in (known, new)]
        rows = [_row(judge, limit(known, judge), of_these) for judge in (*MEASURED, TURN)]
        rows.append([_CEILING, *_correlations(of_these, ceiling), "", "", "", ""])
        parts += [f"### {title}", table(_HEADINGS, rows)]
    return "\n\n".join(parts) + "\n"


_HEADINGS: Final = (
    *("judge", "correlation", "by setting", "held out: correlation", "by setting"),
    *("harmful vetoed", "harmless vetoed", "held out: harmful vetoed", "harmless vetoed"),
)


def _row(judge: str, at: float, known_and_new: Sequence[Sequence[Trial]]) -> list[str]:
    numbers = _correlations(known_and_new, functools.partial(correlation, judge=judge))
    counts = [text for some in known_and_new for text in vetoes(some, judge, at).texts]
    return [_WORDS[judge], *numbers, *counts]


def _correlations(
    known_and_new: Sequence[Sequence[Trial]], of: Callable[[Sequence[Trial]], float]
) -> list[str]:
    numbers = [number for some in known_and_new for number in (of(some), by_setting(some, of))]
    return [f"{number:.2f}" if math.isfinite(number) else "" for number in numbers]


def _losses(found: Sequence[Trial]) -> str:
    settings = list(dict.fromkeys(t.setting for t in found))
    seeds = [max(t.difference.seeds for t in found if t.setting == s) for s in settings]
    margins = [f"{s.margin:.0%}" for s in settings]
    rows = [["margin", *margins], ["seeds, at most", *map(str, seeds)]]
    return _by_arm(found, _ratio, rows)


def _errors(found: Sequence[Trial]) -> str:
    def percent(trial: Trial | None) -> str:
        score = math.inf if trial is None else trial.scores.get("layers", math.inf)
        return f"{100 * score:.2g}" if math.isfinite(score) else ""

    return _by_arm(found, percent, [])


def _by_arm(
    found: Sequence[Trial], text: Callable[[Trial | None], str], more: Sequence[Sequence[str]]
) -> str:
    """A row for each arm, a column for each setting."""
    settings = list(dict.fromkeys(t.setting for t in found))
    of = {(t.setting, t.arm): t for t in found}
    head = ["arm", *(s.title + (" (held out)" if s.held_out else "") for s in settings)]
    arms = [name for name in ARMS if name != EXACT_ARM]
    rows = [[name, *(text(of.get((setting, name))) for setting in settings)] for name in arms]
    return table(head, [*rows, *more])


def _ratio(trial: Trial | None) -> str:
    if trial is None:
        return ""
    ratio = math.exp(trial.difference.mean) if math.isfinite(trial.difference.mean) else math.inf
    text = f"{ratio:.4f}" if math.isfinite(ratio) else "diverged"
    mark = {"harmful": "**", "not decided": "*"}.get(trial.verdict, "")
    return f"{mark}{text}{mark}"
