"""What the runs of the convergence study say: means with intervals, as tables and pictures."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.training import Run

# Two-sided 95 % points of Student's distribution, by degrees of freedom.
_STUDENT: Final = (math.nan, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
_COLOURS: Final = {"none": "#c0392b", "own_and_previous": "#e0a020", "local": "#1f6fb2"}
_NAMES: Final = {
    "none": "uncorrected",
    "own_and_previous": "own_and_previous (SAPipe)",
    "local": "local (ours)",
}
_NEAR: Final = 1.05
_WORST: Final = 4.0  # times the synchronous loss, at which pictures end


Outcomes = Iterable[tuple[Run, Mapping[str, Any]]]


@dataclass(frozen=True)
class Setting:
    """What the arms of one comparison have in common."""

    task: str
    optimizer: str
    lr: float
    workers: int

    @classmethod
    def of(cls, run: Run) -> Setting:
        return cls(run.task, run.optimizer, run.lr, run.workers)

    @property
    def title(self) -> str:
        workers = f", {self.workers} workers" if self.workers != 4 else ""
        return f"{self.task}, {self.optimizer}, lr {self.lr:g}{workers}"


@dataclass(frozen=True)
class Cell:
    """One arm over all seeds; losses by seed."""

    arm: Arm
    losses: Mapping[int, float]
    accuracies: Mapping[int, float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.losses.values())

    @property
    def interval(self) -> float:
        """Half of the 95 % interval of the mean."""
        return _half([*self.losses.values()])

    def over(self, other: Cell) -> float:
        """The mean loss over that of another arm, of the seeds that both have."""
        seeds = self.losses.keys() & other.losses.keys()
        mine, theirs = ([one.losses[seed] for seed in seeds] for one in (self, other))
        return statistics.fmean(mine) / statistics.fmean(theirs)

    def against(self, other: Cell) -> tuple[float, float]:
        """The mean difference of the logarithms to another arm with the same seeds, and half of its
        interval. Of logarithms, as otherwise one seed that nearly diverges hides all others."""
        seeds = sorted(self.losses.keys() & other.losses.keys())
        differences = [math.log(self.losses[seed] / other.losses[seed]) for seed in seeds]
        return statistics.fmean(differences), _half(differences)


def _half(values: Sequence[float]) -> float:
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return math.inf
    return _STUDENT[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))


def by_setting(outcomes: Outcomes) -> dict[Setting, dict[Arm, dict[int, Mapping[str, Any]]]]:
    """Then by arm, then by seed."""
    found: dict[Setting, dict[Arm, dict[int, Mapping[str, Any]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for run, outcome in outcomes:
        found[Setting.of(run)][run.arm][run.seed] = outcome
    return found


def cells(outcomes: Outcomes) -> dict[Setting, list[Cell]]:
    """By setting, the synchronous arm first."""
    return {
        setting: sorted(
            (
                Cell(
                    arm,
                    {seed: float(o["loss"]) for seed, o in by_seed.items()},
                    {seed: float(o["accuracy"]) for seed, o in by_seed.items()},
                )
                for arm, by_seed in arms.items()
            ),
            key=lambda cell: _order(cell.arm),
        )
        for setting, arms in by_setting(outcomes).items()
    }


def _order(arm: Arm) -> tuple[bool, int, int, int, str, bool, float]:
    late = arm.late if arm.late >= 0 else 1000
    return bool(arm.late), late, arm.delay, arm.merge, arm.correction, arm.partial, arm.power


def verdict(cell: Cell, synchronous: Cell) -> str:
    """Whether its loss differs from the synchronous one by more than chance explains."""
    if not math.isfinite(cell.mean):
        return "**diverged**"
    difference, half = cell.against(synchronous)
    if not math.isfinite(half):
        return "one seed"
    if difference - half > 0.0:
        return "**worse**"
    return "better" if difference + half < 0.0 else "same"


def tables(found: Mapping[Setting, Sequence[Cell]]) -> str:
    """A table for each setting."""
    parts = []
    for setting, row in found.items():
        base = row[0]
        lines = [
            f"### {setting.title}",
            "",
            "| arm | seeds | loss | of synchronous | accuracy | against synchronous |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for cell in row:
            accuracy = statistics.fmean(cell.accuracies.values())
            said = "" if cell is base else verdict(cell, base)
            lines.append(
                f"| {cell.arm.name} | {len(cell.losses)} | {loss_text(cell)} | "
                f"{cell.over(base):.2f} | {100 * accuracy:.1f} % | {said} |"
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def loss_text(cell: Cell) -> str:
    if not math.isfinite(cell.mean):
        return "diverged"
    half = f" ± {cell.interval:.3f}" if math.isfinite(cell.interval) else ""
    return f"{cell.mean:.3f}{half}" if cell.mean < 1000.0 else f"{cell.mean:.1e}"


def summary(found: Mapping[Setting, Sequence[Cell]]) -> str:
    """How close each correction comes to synchronous training."""
    said: dict[tuple[Arm, str], list[str]] = defaultdict(list)
    ratios: dict[tuple[Arm, str], list[float]] = defaultdict(list)
    for row in found.values():
        if not math.isfinite(row[0].mean):
            continue  # nothing to compare with
        for cell in row[1:]:
            arm = cell.arm
            situation = Arm(arm.late, arm.delay, arm.merge, correction="")
            key = situation, _correction(cell.arm)
            said[key].append(verdict(cell, row[0]).strip("*"))
            ratios[key].append(min(cell.over(row[0]), 1e6))
    lines = [
        "| late | correction | settings | within 5 % | worse | diverged | median / sync | most |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key in sorted(said, key=lambda key: (_order(key[0]), key[1])):
        shares, verdicts = ratios[key], said[key]
        worse = "" if set(verdicts) <= {"one seed", "diverged"} else str(verdicts.count("worse"))
        lines.append(
            f"| {key[0].name.rstrip(', ')} | {key[1]} | {len(shares)} | "
            f"{sum(ratio <= _NEAR for ratio in shares)} | {worse} | "
            f"{verdicts.count('diverged')} | {ratio_text(statistics.median(shares))} | "
            f"{ratio_text(max(shares))} |"
        )
    return "\n".join(lines)


def _correction(arm: Arm) -> str:
    parts = [_NAMES.get(arm.correction, arm.correction)]
    parts += [f"from step {arm.warmup} on"] if arm.warmup != Arm.warmup else []
    parts += [f"below {arm.below:g} of the rate"] if arm.below < 1.0 else []
    parts += [f"{arm.share:.0%} of the bytes"] if arm.share < 1.0 else []
    parts += ["sums too"] if arm.partial else []
    parts += ["rate by k"] if arm.power else []
    return ", ".join(parts)


def ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 100.0 else "over 100"


def draw(found: Mapping[Setting, Sequence[Cell]], folder: Path) -> list[Path]:
    """A picture for each task: loss over that of synchronous training."""
    from matplotlib.figure import Figure

    paths = []
    for task in dict.fromkeys(setting.task for setting in found):
        rows = [
            (setting, row)
            for setting, row in found.items()
            if setting.task == task and math.isfinite(row[0].mean)
        ]
        figure = Figure(figsize=(10, 2.1 * ((len(rows) + 1) // 2)), layout="constrained")
        axes = figure.subplots((len(rows) + 1) // 2, 2, squeeze=False, sharex=True)
        for axis, (setting, row) in zip(axes.flat, rows, strict=False):
            _draw_setting(axis, setting, row)
        for axis in axes.flat[len(rows) :]:
            axis.set_axis_off()
        handles = axes.flat[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=3, frameon=False)
        figure.supxlabel("validation loss / that of synchronous training, with 95 % intervals")
        path = folder / f"{task}.png"
        figure.savefig(path, dpi=110)
        paths.append(path)
    return paths


def _draw_setting(axis: Any, setting: Setting, row: Sequence[Cell]) -> None:
    synchronous, base = row[0], row[0].mean
    half = min(synchronous.interval / base, 1.0)
    axis.axvspan(1.0 - half, 1.0 + half, color="#d8dee6")
    situations = list(dict.fromkeys(_situation(cell.arm) for cell in row[1:]))
    for place, (correction, colour) in enumerate(_COLOURS.items()):
        mine = [cell for cell in row[1:] if cell.arm.correction == correction]
        ys = [situations.index(_situation(cell.arm)) + 0.22 * (place - 1) for cell in mine]
        xs = [min(cell.over(synchronous), _WORST) for cell in mine]
        errors = [
            0.0 if x == _WORST else min(cell.interval / base, 1.0)
            for x, cell in zip(xs, mine, strict=True)
        ]
        style = {"fmt": "o", "ms": 4, "lw": 1, "color": colour, "label": _NAMES[correction]}
        axis.errorbar(xs, ys, xerr=errors, **style)
    axis.set_title(setting.title, fontsize=9)
    axis.set_yticks(range(len(situations)), situations, fontsize=7)
    axis.set_xlim(0.6, _WORST * 1.05)
    axis.invert_yaxis()


def _situation(arm: Arm) -> str:
    which = f"{arm.share:.0%}" if arm.share < 1.0 else "all" if arm.late < 0 else "half"
    parts = [f"{which}, {arm.delay} late"]
    parts += [f"x{arm.merge}"] if arm.merge > 1 else []
    parts += ["calm"] if arm.below < 1.0 else []
    return ", ".join(parts)
