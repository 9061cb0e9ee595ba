"""The report of the study, and its picture."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from deft_horovod.picture.figure import new_figure

Rows = Sequence[dict[str, Any]]
METHODS = {
    "exact": "CP-SAT",
    "hybrid": "heuristic of 1604.08335, as read here",
    "first_fit": "first fit decreasing",
}
PACKERS = {
    "exact": "CP-SAT, all chosen at once",
    "best_fit": "heuristic, ours",
    "ready": "CP-SAT, ready virtual machines",
    "first_fit": "first fit decreasing, ready virtual machines",
}
TITLES = {
    "light": "20 tasks, own machines nearly suffice",
    "heavy": "40 tasks on the same machines, with nearer deadlines",
}
USES = ("own_use", "paid_use", "whole_use")
# As published: rent saved and use gained by the heuristic over first fit decreasing, in percent.
SAVED, USED = (16.2, 76.0), (47.3, 182.8)
HEURISTIC, READY = 4.3, 1.06


def write_page(folder: Path) -> None:
    """README.md and rent.png of what is there."""
    found = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")
    }
    text = "\n".join(_lines(found))
    (folder / "README.md").write_text(text + "\n", encoding="utf-8")
    _draw({name: found[name] for name in TITLES}, folder / "rent.png")


def _lines(found: dict[str, Any]) -> Iterator[str]:
    intro = (Path(__file__).parent / "intro.txt").read_text(encoding="utf-8")
    yield intro.rstrip()
    yield ""
    yield "## Deadlines and rent"
    for name, title in TITLES.items():
        yield from ("", f"### {title}", "")
        yield from _schedules(found[name])
    yield from ("", "![Rent of each method over the bound](rent.png)", "")
    yield from ("(Rent of each instance over that of CP-SAT, sorted; CP-SAT's own is 1.)", "")
    yield from _claims(found)
    yield from ("", "## Consolidation", "")
    yield from _packings(found["consolidation"])
    yield from ("", "## Scale", "")
    yield from _scale(found["scale"])


def _schedules(rows: Rows) -> Iterator[str]:
    yield "| method | mean rent | over the bound | missed tasks | own use | paid use | use of all |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    bound = mean(row["bound"]["rent"] for row in rows)
    for name, title in METHODS.items():
        rent = mean(row[name]["rent"] for row in rows)
        uses = [mean(row[name][use] for row in rows) for use in USES]
        missed = sum(row[name]["missed"] for row in rows)
        told = " | ".join(f"{use:.1%}" for use in uses)
        yield f"| {title} | {rent:.3f} | {rent / bound - 1:+.1%} | {missed} | {told} |"
    yield f"| bound | {bound:.3f} | | | | | |"
    proved = sum(row["gap"] == 0.0 for row in rows)
    gap = median(row["gap"] for row in rows if row["gap"] is not None)
    took_s = mean(row["took_s"] for row in rows)
    yield ""
    yield (
        f"{len(rows)} instances. CP-SAT proved its schedule the cheapest in {proved} of them; "
        f"the median gap is {gap:.1%}, and it took {took_s:.1f} s by the clock."
    )


def _claims(found: dict[str, Any]) -> Iterator[str]:
    yield "| published (1604.08335) | by them | instances | here, mean (least to most) | verdict |"
    yield "| --- | --- | --- | --- | --- |"
    for name in TITLES:
        rows = found[name]
        saved = [
            100.0 * (1.0 - row["hybrid"]["rent"] / row["first_fit"]["rent"])
            for row in rows
            if row["first_fit"]["rent"]
        ]
        yield _claim("less rent than first fit decreasing", SAVED, name, saved)
        used = [
            100.0 * (row["hybrid"]["whole_use"] / row["first_fit"]["whole_use"] - 1.0)
            for row in rows
        ]
        yield _claim("better use than first fit decreasing", USED, name, used)


def _claim(said: str, published: tuple[float, float], name: str, ours: list[float]) -> str:
    low, high = published
    here = mean(ours)
    word = "met" if low <= here <= high else "more than published" if here > high else "not met"
    told = f"{here:+.1f} % ({min(ours):+.1f} to {max(ours):+.1f})"
    return f"| {said} | {low} to {high} % | {name} | {told} | {word} |"


def _packings(rows: Rows) -> Iterator[str]:
    yield "| method | mean machines | over the fewest | most over | without room |"
    yield "| --- | --- | --- | --- | --- |"
    for name, title in PACKERS.items():
        machines = mean(row[name]["machines"] for row in rows)
        out = sum(row[name]["without_room"] for row in rows)
        over, most = _over(rows, name)
        yield f"| {title} | {machines:.2f} | {over:+.2%} | {most:+.1%} | {out} |"
    proved = sum(row["bound"] == row["exact"]["machines"] for row in rows)
    yield ""
    yield f"{len(rows)} instances; CP-SAT proved that fewer machines cannot do in {proved} of them."
    yield ""
    yield "| published (1604.08330) | by them | here, mean | verdict |"
    yield "| --- | --- | --- | --- |"
    for name, said, limit in (
        ("best_fit", "heuristic over the optimum", HEURISTIC),
        ("ready", "ready virtual machines over the optimum", READY),
    ):
        over, _ = _over(rows, name)
        word = "met" if 100.0 * over <= limit else "not met: more than published"
        yield f"| {said} | {limit} % | {over:+.2%} | {word} |"


def _over(rows: Rows, name: str) -> tuple[float, float]:
    shares = [row[name]["machines"] / row["exact"]["machines"] - 1.0 for row in rows]
    return mean(shares), max(shares)


def _scale(found: dict[str, Any]) -> Iterator[str]:
    exact, heuristics = found["exact"], found["heuristics"]
    rent, bound = exact["exact"]["rent"], exact["bound"]["rent"]
    yield (
        f"- {exact['jobs']} jobs of one to four ranks on {exact['machines']} own machines and "
        f"{exact['kinds']} kinds to rent, the default effort: {exact['took_s']:.0f} s. "
        f"Rent {rent:.2f}, heuristic {exact['hybrid']['rent']:.2f}, first fit decreasing "
        f"{exact['first_fit']['rent']:.2f}, bound {bound:.2f}: a gap of {exact['gap']:.0%}."
    )
    tasks = heuristics["tasks"]
    yield (
        f"- {tasks:,} tasks: the heuristic takes {heuristics['hybrid']['took_s']:.2f} s, first fit "
        f"decreasing {heuristics['first_fit']['took_s']:.2f} s of a core."
    )


def _draw(parts: dict[str, Rows], path: Path) -> None:
    figure = new_figure(9.0, 3.6)
    for place, (name, rows) in enumerate(parts.items(), 1):
        axes = figure.add_subplot(1, len(parts), place)
        for method, colour in (("hybrid", "#d55e00"), ("first_fit", "#0072b2")):
            axes.plot(_ratios(rows, method), color=colour, label=METHODS[method])
        axes.plot(_ratios(rows, "bound"), color="#999999", label="bound")
        axes.axhline(1.0, color="#000000", linewidth=0.8)
        axes.set_title(TITLES[name], fontsize=9, loc="left")
        axes.set_xlabel("instances, sorted", fontsize=8)
        axes.set_ylabel("rent over CP-SAT's", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(visible=True, linewidth=0.3)
    figure.axes[0].legend(frameon=False, fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


def _ratios(rows: Rows, method: str) -> list[float]:
    ours = [(row[method]["rent"], row["exact"]["rent"]) for row in rows]
    return sorted(rent / exact for rent, exact in ours if exact)
