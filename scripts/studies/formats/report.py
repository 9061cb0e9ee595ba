"""What the runs of the study of wire formats say."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.base.wire_format import EXACT, WireFormat
from scripts.studies.formats.noninferior import Difference, difference, holm, seeds_needed
from scripts.studies.formats.study import LEVEL, PILOT_FORMAT, POWER, SMALL, Setting, Study
from scripts.studies.formats.training import Run, final_loss

_MOST_SEEDS: Final = 12
_HEADS: Final = {
    "small": """\
# Wire formats: results

Made by `python -m scripts.studies.formats.run report` from [study.json](study.json). What was
asked, of what, with which margins and tests was fixed before: [protocol.md](protocol.md).
""",
    "larger": """\
# Wire formats: results of the larger tasks

Made by `python -m scripts.studies.formats.run report --study larger` from
[larger-study.json](larger-study.json). What was asked was fixed before:
[protocol-larger.md](protocol-larger.md).
""",
    "repeated": """\
# Wire formats: results of the repeated study

Made by `python -m scripts.studies.formats.run report --study repeated` from
[repeated-study.json](repeated-study.json). What was asked was fixed before:
[protocol-repeated.md](protocol-repeated.md).
""",
    "colours": """\
# Wire formats: results on colours

Made by `python -m scripts.studies.formats.run report --study colours` from
[colours-study.json](colours-study.json). What was asked was fixed before:
[protocol-colours.md](protocol-colours.md).
""",
    "habits": """\
# Wire formats: results with other habits

Made by `python -m scripts.studies.formats.run report --study habits` from
[habits-study.json](habits-study.json). What was asked was fixed before:
[protocol-habits.md](protocol-habits.md).
""",
    "images": """\
# Wire formats: results on images

Made by `python -m scripts.studies.formats.run report --study images` from
[images-study.json](images-study.json). What was asked was fixed before:
[protocol-images.md](protocol-images.md).
""",
}


@dataclass(frozen=True)
class Verdict:
    """On an arm in one setting."""

    difference: Difference
    exact: float  # loss of exact training
    non_inferior: bool
    worse: bool

    @property
    def text(self) -> str:
        words = [*(["non-inferior"] * self.non_inferior), *(["worse"] * self.worse)]
        return ", ".join(words) or "not decided"


# A setting's losses, by format and seed.
_Losses = Mapping[WireFormat, Mapping[int, float]]


def by_setting(runs: Mapping[Run, Sequence[float]]) -> dict[Setting, _Losses]:
    found: dict[Setting, dict[WireFormat, dict[int, float]]] = {}
    for run, losses in runs.items():
        formats = found.setdefault(Setting.of(run), defaultdict(dict))
        formats[run.format][run.seed] = final_loss(losses)
    return dict(found)


def _compared(losses: _Losses, arm: WireFormat, margin: float) -> Difference | None:
    return difference(losses.get(arm, {}), losses.get(EXACT, {}), margin)


def _deviations(
    pilot: Mapping[Run, Sequence[float]], settings: Sequence[Setting], study: Study
) -> dict[str, float]:
    """By task, of the difference of two trainings that are as good as the same."""
    losses = by_setting(pilot)
    squares: dict[str, list[float]] = defaultdict(list)
    for setting in settings:
        margin = study.margins[setting.task]
        found = _compared(losses.get(setting, {}), PILOT_FORMAT, margin)
        if found is not None and math.isfinite(found.mean):
            squares[setting.task].append(found.deviation**2)
    return {task: math.sqrt(statistics.fmean(all_)) for task, all_ in squares.items()}


def seeds_by_task(
    pilot: Mapping[Run, Sequence[float]], settings: Sequence[Setting], study: Study = SMALL
) -> dict[str, int]:
    """How many seeds the study needs."""
    level = LEVEL / max(1, len(settings))
    return {
        task: min(_MOST_SEEDS, seeds_needed(deviation, study.margins[task], level, POWER))
        for task, deviation in _deviations(pilot, settings, study).items()
    }


def pilot_text(
    pilot: Mapping[Run, Sequence[float]], settings: Sequence[Setting], study: Study = SMALL
) -> str:
    """For the protocol."""
    seeds = seeds_by_task(pilot, settings, study)
    return "\n".join(
        f"{task}: deviation {deviation:.4f}, {seeds[task]} seeds"
        for task, deviation in _deviations(pilot, settings, study).items()
    )


def _complete(
    found: Mapping[Run, Sequence[float]], settings: Sequence[Setting], study: Study
) -> dict[Run, Sequence[float]]:
    """Runs with seeds that all settings of the task with this optimizer and all arms have: a study
    that is cut short has others."""
    seeds = {
        (task, optimizer): set.intersection(
            *(
                {run.seed for run in found if Setting.of(run) == s and run.format == one}
                for s in settings
                if (s.task, s.optimizer) == (task, optimizer)
                for one in (EXACT, *study.arms)
            )
        )
        for task, optimizer in {(s.task, s.optimizer) for s in settings}
    }
    return {r: losses for r, losses in found.items() if r.seed in seeds[r.task, r.optimizer]}


def untrained(
    found: Mapping[Run, Sequence[float]], settings: Sequence[Setting], study: Study
) -> list[Setting]:
    """Those without a whole seed."""
    trained = {Setting.of(run) for run in _complete(found, settings, study)}
    return [setting for setting in settings if setting not in trained]


def verdicts(
    found: Mapping[Run, Sequence[float]],
    settings: Sequence[Setting],
    study: Study,
    arm: WireFormat,
) -> dict[Setting, Verdict | None]:
    """None: exact training diverged, so there is nothing to compare with, or is yet to come."""
    losses = by_setting(_complete(found, settings, study))
    all_ = {s: _compared(losses.get(s, {}), arm, study.margins[s.task]) for s in settings}
    rows = {s: one for s, one in all_.items() if one is not None}
    to_come = len(untrained(found, settings, study))
    good = holm([one.p_value for one in rows.values()], LEVEL, to_come)
    worse = holm([one.p_value_of_harm for one in rows.values()], LEVEL, to_come)
    decided = {
        setting: Verdict(one, statistics.fmean(losses[setting][EXACT].values()), fine, harm)
        for (setting, one), fine, harm in zip(rows.items(), good, worse, strict=True)
    }
    return {setting: decided.get(setting) for setting in settings}


def page(
    found: Mapping[Run, Sequence[float]], settings: Sequence[Setting], study: Study = SMALL
) -> str:
    """As Markdown."""
    parts = [_HEADS[study.name]]
    to_come = untrained(found, settings, study)
    if to_come:
        parts.append(f"Not trained yet: {_titles(to_come)}.\n")
    for arm in study.arms:
        all_ = verdicts(found, settings, study, arm)
        rows = {setting: one for setting, one in all_.items() if one is not None}
        lost = [s for s, one in all_.items() if one is None and s not in to_come]
        parts.append(_section(arm, rows))
        if lost:
            parts.append(f"Not compared, as exact training diverged: {_titles(lost)}.\n")
    return "\n".join(parts)


def _titles(settings: Sequence[Setting]) -> str:
    return "; ".join(setting.title for setting in settings)


def _section(arm: WireFormat, rows: Mapping[Setting, Verdict]) -> str:
    good = sum(one.non_inferior for one in rows.values())
    worse = sum(one.worse for one in rows.values())
    lines = [
        f"## {arm}\n",
        f"Non-inferior: {good} of {len(rows)} settings; worse: {worse} (Holm).\n",
        "| task, optimizer, rate | seeds | exact | ratio | 95 % below | margin | p | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for setting, verdict in rows.items():
        one = verdict.difference
        lines.append(
            f"| {setting.title} | {one.seeds} | {verdict.exact:.3f} | {math.exp(one.mean):.4f} "
            f"| {math.exp(one.upper):.4f} | {1.0 + one.margin:g} | {one.p_value:.2g} "
            f"| {verdict.text} |"
        )
    return "\n".join([*lines, ""])
