"""What scripts/benchmarks/target/run.py measured: time to a loss, as a table and as curves.

python -m scripts.benchmarks.target.report FILE.json  the table of a report, from its data
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from deft_horovod.picture.figure import new_figure
from scripts.benchmarks.target.curve import (
    AVERAGED,
    MARGIN,
    Done,
    after_as_many_steps,
    levelled,
    speed,
    speed_at_most,
)
from scripts.benchmarks.target.ratios import as_more, as_times, in_words, mean_of, trimmed

_TITLES: Final = MappingProxyType(
    {
        "stock": "stock Horovod",
        "fp16": "stock, `Compression.fp16`",
        "exact": "ours, `exact`",
        "auto": "ours",
        "fast": "ours, `fast`",
    }
)
_COLOURS: Final = MappingProxyType(
    {
        "stock": "#777777",
        "fp16": "#cc79a7",
        "exact": "#d55e00",
        "auto": "#0072b2",
        "fast": "#009e73",
    }
)

Key = tuple[float, int]  # CCR and seed


def by_point(done: Sequence[Done]) -> dict[Key, dict[str, Done]]:
    """Where stock Horovod is there to set the target."""
    found: dict[Key, dict[str, Done]] = defaultdict(dict)
    for one in done:
        found[one["options"]["ccr"], one["options"]["seed"]][one["options"]["name"]] = one
    return {key: arms for key, arms in sorted(found.items()) if "stock" in arms}


def _at(points: Mapping[Key, dict[str, Done]], ccr: float) -> list[dict[str, Done]]:
    return [arms for (ratio, _), arms in points.items() if ratio == ccr]


def _speeds(here: Sequence[Mapping[str, Done]], name: str, over: str) -> list[float | None]:
    """Seed by seed; None where the target was not reached."""
    return [speed(arms, name, over) for arms in here if over in arms]


def _if_all(found: Sequence[float | None]) -> list[float] | None:
    """None: one is not known."""
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _faster(here: Sequence[Mapping[str, Done]], name: str, over: str) -> list[str]:
    """How many times, with the interval; and without the largest and the smallest. Where some never
    get to the target, the most that they leave for the mean."""
    found = _speeds(here, name, over)
    if not found:
        return ["", ""]
    reached = _if_all(found)
    if reached is None:
        said = f"not reached by {found.count(None)} of {len(found)}"
        bounds = _if_all([speed_at_most(arms, name, over) for arms in here if over in arms])
        return [
            said if bounds is None else f"{said}, at most {as_times(mean_of(bounds).value)}",
            "",
        ]
    without = trimmed(reached)
    return [in_words(reached), "" if without is None else as_times(without)]


def _single(here: Sequence[Mapping[str, Done]], name: str) -> str:
    """How many times as fast as stock Horovod and as stock in fp16, by single validations."""
    texts = []
    for over in ("stock", "fp16"):
        reached = _if_all(_speeds(here, name, over))
        texts.append(as_times(mean_of(reached).value) if reached else "-")
    return ", ".join(texts)


def _loss(here: Sequence[Mapping[str, Done]], name: str) -> str:
    """After the same number of steps, to that of stock Horovod, in percent."""
    ratios = [after_as_many_steps(arms, name)[2] / arms["stock"]["curve"][-1][2] for arms in here]
    return in_words(ratios, as_more)


def table(done: Sequence[Done]) -> str:
    single, points = by_point(done), by_point([levelled(one) for one in done])
    head = ["CCR", "arm", "seeds", "ms a step", "final loss"]
    head += ["to the target, times as fast as stock", "trimmed", "as stock in fp16", "trimmed"]
    head += ["both by single validations", "runs in the end"]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for ccr in sorted({key[0] for key in points}):
        for name in _TITLES:
            here = [arms for arms in _at(points, ccr) if name in arms]
            if not here:
                continue
            ends = [after_as_many_steps(arms, name) for arms in here]
            cells = [
                f"{ccr:g}",
                _TITLES[name],
                str(len(here)),
                f"{statistics.median(1e3 * end[1] / end[0] for end in ends):.0f}",
                _loss(here, name),
                *_faster(here, name, "stock"),
                *_faster(here, name, "fp16"),
                _single([arms for arms in _at(single, ccr) if name in arms], name),
                ", ".join(sorted({_runs(arms[name]) for arms in here})),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _runs(one: Done) -> str:
    stats = one["stats"]
    if not stats.get("policy"):
        return "stock"
    judged = stats.get("accuracy") or {}
    late = f", late ({judged.get('verdict')})" if stats.get("late") else ""
    return f"{stats.get('running')}{late}"


def draw(done: Sequence[Done], path: Path) -> None:
    """Loss over time; a panel for each ratio, a line for each training."""
    points = by_point(done)
    ratios = sorted({key[0] for key in points})
    figure = new_figure(5.0 * len(ratios), 3.6)
    axes = figure.subplots(1, len(ratios), squeeze=False, sharey=True)[0]
    for axis, ccr in zip(axes, ratios, strict=True):
        axis.set_title(f"CCR {ccr:g}", fontsize=10)
        axis.set_xlabel("seconds")
        for arms in _at(points, ccr):
            for name, one in arms.items():
                times, losses = ([row[i] for row in one["curve"]] for i in (1, 2))
                known = axis.get_legend_handles_labels()[1]
                label = None if _TITLES[name] in known else _TITLES[name]
                axis.plot(times, losses, color=_COLOURS[name], linewidth=1.2, label=label)
        axis.grid(visible=True, linewidth=0.3)
    axes[0].set_ylabel("validation loss")
    axes[0].legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=110, bbox_inches="tight")


def pace(done: Sequence[Done]) -> str:
    """What steps took beside the trainings, where nothing travels: whether all had the same."""
    said = []
    for name, title in _TITLES.items():
        times_ms = [ms for one in done if one["options"]["name"] == name for ms in one["alone_ms"]]
        if times_ms:
            middle = f"{statistics.median(times_ms):.1f}"
            said.append(f"{middle} ({min(times_ms):.1f} .. {max(times_ms):.1f}) ms for {title}")
    return (
        f"Just before and just after a training, a step without communication took {_list(said)}."
    )


def _list(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _kept(one: Done) -> dict[str, Any]:
    options = {key: value for key, value in one["options"].items() if key != "output"}
    return {**one, "options": options}


def write(done: Sequence[Done], name: str, command: str, folder: Path) -> Path:
    """The report; returns its path."""
    first = done[0]["options"]
    steps = sorted({one["options"]["steps"] for one in done})
    what = (
        f"A transformer on characters, {first['optimizer']} at {first['lr']:g} "
        f"({first['schedule']}), {steps[0]} steps of {first['compute_ms']:g} ms computing on "
        f"{first['hosts']} hosts, real gradients. A loss is the mean of {AVERAGED} validations. "
        "The target is stock Horovod's final one with the same seed, and "
        f"{100 * MARGIN:g} %. Profile, warm-up and trials count as time; the clock never stops. "
        "Geometric means over the seeds, with their 95 % t-intervals; trimmed: without the fastest "
        "and the slowest seed. The final loss is that after the same "
        "number of steps, to that of stock Horovod."
    )
    if first.get("restless_s"):
        what += (
            " The rate of the link halves, or is the full one again, every "
            f"{first['restless_s']:g} s."
        )
    if steps[-1] > steps[0]:
        what += (
            f" Ours trains up to {steps[-1]} steps: whether it gets to the target does not hang on "
            "its last validations. The table's steps and final losses leave out what came later."
        )
    text = [
        f"# Time to a loss: {name}",
        f"Made by `{command}`; what is measured and how is in [README.md](README.md).",
        what,
        table(done),
        pace(done),
        f"![loss over time]({name}.png)",
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    rows = ",\n".join(json.dumps(_kept(one), sort_keys=True) for one in done)
    (folder / f"{name}.json").write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    draw(done, folder / f"{name}.png")
    return path


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
