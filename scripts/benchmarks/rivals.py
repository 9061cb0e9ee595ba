"""Published schedulers in a report of scripts/benchmarks/cluster.py: the best one, and who beats
it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Cell = Mapping[str, Any]

# Exact ones train as stock Horovod does, which is one of them.
EXACT = (
    "stock",
    "ddp",
    "wfbp",
    "ddp_buckets",
    "mgwfbp",
    "p3",
    "bytescheduler",
    "usbyte",
    "dear",
    "dcredit",
)
LATE = ("covap", "sapipe")
INEXACT = ("stock_fp16", *LATE)  # Horovod's own fp16 is the arm to beat
OURS = ("sync", "equal", "fewest", "least_stale", "deft")
# What the DeFT paper compares itself with.
COMPARED = ("bytescheduler", "usbyte")
HEAD = (
    "hosts",
    "model",
    "CCR",
    "best exact rival",
    "least_stale, no delay",
    "best rival of all",
    "equal, no delay",
    "fewest_bytes",
    "least_stale",
    "deft",
    *(f"deft over {name}" for name in COMPARED),
)


def step_ms(cell: Cell, arm: str) -> float:
    return float(cell["arms"][arm]["step_ms"]["median"])


def best(cell: Cell, names: Sequence[str]) -> str | None:
    """The fastest of these; None where no published scheduler but stock and DDP took part."""
    if not {*EXACT[2:], *LATE} & {*cell["arms"]}:
        return None
    there = [name for name in names if name in cell["arms"]]
    return min(there, key=lambda name: step_ms(cell, name), default=None)


def of_best_exact(cell: Cell, arm: str) -> float | None:
    """Its step over that of the fastest exact rival."""
    rival = best(cell, EXACT)
    return None if rival is None else step_ms(cell, arm) / step_ms(cell, rival)


def of_best(cell: Cell, arm: str) -> float | None:
    """The same over the fastest of all rivals."""
    rival = best(cell, (*EXACT, *INEXACT))
    return None if rival is None else step_ms(cell, arm) / step_ms(cell, rival)


def rows(cells: Sequence[Cell]) -> list[list[str]]:
    """Steps over computing time; the last columns say how much faster, in percent. None without
    rivals."""
    found = []
    for cell in cells:
        exact, either = best(cell, EXACT), best(cell, (*EXACT, *INEXACT))
        if exact is None or either is None:
            continue
        row = [str(cell["hosts"]), cell["profile"], f"{cell['ccr']:g}"]
        row += [f"{exact} {_of_compute(cell, exact)}", _of_compute(cell, "sync")]
        row += [f"{either} {_of_compute(cell, either)}"]
        row += [_of_compute(cell, name) for name in OURS[1:]]
        found.append([*row, *(_faster(cell, name) for name in COMPARED)])
    return found


def _of_compute(cell: Cell, arm: str) -> str:
    entry = cell["arms"].get(arm, {}).get("of_compute")
    return f"{entry['median']:.2f}" if entry else ""


def _faster(cell: Cell, rival: str) -> str:
    if not {rival, "deft"} <= {*cell["arms"]}:
        return ""
    return f"{step_ms(cell, rival) / step_ms(cell, 'deft') - 1.0:+.0%}"
