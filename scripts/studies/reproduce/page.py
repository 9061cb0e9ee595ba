"""What the scripts of this room write: a page for people from the data that stand beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scripts.studies.reproduce.reproduction import EXACT, KINDS, gain

Data = Mapping[str, Any]
Rows = Sequence[Sequence[object]]

BEST_EXACT = "least_stale"
OURS = ("least_stale", "least_stale_late", "deft")
SHARE_THAT_COUNTS = 0.001
MARKED = {"published": "published", "derived": "derived", "assumed": "**assumed**"}


def page(data: Data) -> str:
    """Markdown."""
    lines = [
        f"# {data['title']}",
        "",
        f"Made by `scripts/studies/reproduce/{data['name']}.py`; {data['name']}.json holds the",
        "same for programs. How it is done and what it can show: [README.md](README.md).",
        "",
        data["intro"],
        "## Published, and here",
        "",
        *table(("published", "by them", "simulated here", "verdict"), _claims(data)),
        "",
    ]
    for extra in data["tables"]:
        lines += [f"## {extra['title']}", "", extra["text"], ""]
        lines += [*table(extra["head"], extra["rows"]), ""]
    lines += [
        "## Step times",
        "",
        "Milliseconds of a step, and in brackets how many times as fast as stock Horovod. CCR is",
        "the time of all gradients as one message, start-up not counted, over that of computing.",
        "No plan that trains as stock Horovod does takes less than the floor.",
        "",
        *_kinds(data),
    ]
    for title, head, rows in _blocks(data):
        lines += [f"### {title}", "", *table(head, rows), ""]
    lines += ["## Where a rival is faster", "", *_faster(data), ""]
    lines += ["## What differs, and why", "", data["notes"]]
    lines += [
        "## Inputs",
        "",
        *table(("name", "value", "", "mark", "source or rule"), _inputs(data)),
    ]
    lines += ["", "Sources:", "", *(f"- {key}: {text}" for key, text in data["sources"].items())]
    return "\n".join([*lines, ""])


def table(head: Sequence[object], rows: Rows) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def _claims(data: Data) -> Rows:
    return [
        (claim["said"], claim["published"], claim["ours"], claim["verdict"])
        for claim in data["claims"]
    ]


def _kinds(data: Data) -> list[str]:
    used = {arm["kind"] for arm in data["arms"].values()}
    return [*(f"- {kind}: {text}" for kind, text in KINDS.items() if kind in used), ""]


def _blocks(data: Data) -> Iterator[tuple[str, list[str], Rows]]:
    """A table for each network with a column for each model, or the other way round."""
    down, across = ("model", "network") if data["across"] == "networks" else ("network", "model")
    for name in dict.fromkeys(cell[down] for cell in data["cells"]):
        cells = [cell for cell in data["cells"] if cell[down] == name]
        titles = [data[f"{across}s"][cell[across]] for cell in cells]
        rows: list[list[object]] = [
            ["computing", "", *(f"{cell['compute_ms']:.1f}" for cell in cells)],
            ["CCR", "", *(f"{cell['ccr']:.2f}" for cell in cells)],
            ["floor", EXACT, *(f"{cell['exact_floor_ms']:.1f}" for cell in cells)],
        ]
        for arm, about in data["arms"].items():
            rows.append([about["title"], about["kind"], *(_step(cell, arm) for cell in cells)])
        yield data[f"{down}s"][name], ["", "", *titles], rows


def _step(cell: Data, arm: str) -> str:
    over = gain(cell, arm, "stock")
    step = f"{cell['arms'][arm]['step_ms']:.1f}"
    return step if over is None else f"{step} ({over:.2f})"


def _faster(data: Data) -> list[str]:
    """Exact rivals, with messages of the same costs, of our best exact plan."""
    found = []
    for cell in data["cells"]:
        place = f"{data['models'][cell['model']]}, {data['networks'][cell['network']]}"
        for arm, about in data["arms"].items():
            ahead = gain(cell, arm, BEST_EXACT) or 0.0
            comparable = about["kind"] == EXACT and about["start_up_share"] == 1.0
            if arm in OURS or not comparable or ahead <= 1.0 + SHARE_THAT_COUNTS:
                continue
            found.append(f"- {place}: {about['title']} by {ahead - 1.0:.1%}")
    if BEST_EXACT not in data["arms"]:
        return ["`least_stale`, exact, was not simulated."]
    count = len(data["cells"])
    more = f"by more than {SHARE_THAT_COUNTS:.1%}"
    if not found:
        return [
            f"In none of {count} cells an exact policy is ahead of `least_stale`, exact, {more}."
        ]
    text = f"Of {count} cells, in these an exact policy is ahead of `least_stale`, exact, {more}:"
    return [text, "", *found]


def _inputs(data: Data) -> Rows:
    return [
        (
            f"`{fact['name']}`",
            f"{fact['value']:.6g}",
            fact["unit"],
            MARKED[fact["mark"]],
            "; ".join(part for part in (fact["source"], fact["note"]) if part),
        )
        for fact in data["inputs"]
    ]
