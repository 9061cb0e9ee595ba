"""The Preserver's foresight as tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Final

from deft_horovod.preserver.budget import DEFAULT_BUDGET
from scripts.studies.convergence.preserver import (
    Trial,
    auto,
    constants,
    rank_correlation,
    trials,
)
from scripts.studies.convergence.report import Outcomes, verdict

_LITTLE: Final = 0.02  # of the loss; a smaller mean increase is no harm
_INTRODUCTION: Final = f"""\
Made by `scripts/studies/convergence/run.py final` from the same runs as [final.md](final.md); what
is foreseen and how is in [preserver.md](../../internals/preserver.md). The turn is that of the
first fifth of each synchronous run. A plan *loses* where its loss is beyond the 95 % interval of
synchronous training; it is *vetoed* where more than {100 * DEFAULT_BUDGET:g} % is expected."""


def preserver_report(outcomes: Outcomes) -> str:
    """All tables."""
    listed = list(outcomes)
    found = trials(listed)
    parts = [
        "# Convergence: what the Preserver foresees",
        _INTRODUCTION,
        "## Expected against measured",
        _correlations(found),
        "## Vetoes",
        _vetoes(found),
        "## Constants",
        _constants(found),
        "## auto",
        "With `max_delay=1`: all one step late, or half, or nothing, as the budget allows.",
        _auto(listed),
    ]
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _groups(found: Sequence[Trial]) -> list[tuple[str, list[Trial]]]:
    groups: list[tuple[str, list[Trial]]] = [("all", list(found))]
    kinds: tuple[tuple[str, Callable[[Trial], str]], ...] = (
        ("task", lambda t: t.setting.task),
        ("correction", lambda t: t.arm.correction),
    )
    for kind, of in kinds:
        groups += [
            (f"{kind} {name}", [t for t in found if of(t) == name])
            for name in dict.fromkeys(map(of, found))
        ]
    return groups


def _correlations(found: Sequence[Trial]) -> str:
    rows = [
        [
            name,
            str(len(mine)),
            f"{rank_correlation([t.expected for t in mine], [t.loss for t in mine]):.2f}",
            f"{100 * statistics.median(t.expected for t in mine):.1f} %",
            f"{100 * math.expm1(statistics.median(t.loss for t in mine)):.1f} %",
        ]
        for name, mine in _groups(found)
    ]
    head = ("arms", "number", "rank correlation", "expected, median", "measured, median")
    return table(head, rows)


def _vetoes(found: Sequence[Trial]) -> str:
    known = [t for t in found if math.isfinite(t.half)]
    classes: tuple[tuple[str, Callable[[Trial], bool]], ...] = (
        ("those that lose", lambda t: t.loses),
        ("those that lose, of `local`", lambda t: t.loses and t.arm.correction == "local"),
        ("those that do not", lambda t: not t.loses),
        ("those that do not, of `local`", lambda t: not t.loses and t.arm.correction == "local"),
        (f"mean loss at most {100 * _LITTLE:g} %", lambda t: t.loss <= _LITTLE),
    )
    rows = []
    for name, belongs in classes:
        mine = [t for t in known if belongs(t)]
        vetoed = sum(t.expected > DEFAULT_BUDGET for t in mine)
        rows.append([name, str(len(mine)), str(vetoed), _percent(vetoed, len(mine))])
    least = _oracle(known)
    note = (
        "By these labels no rule could be perfect: whoever knew each arm's mean loss, and set the "
        f"limit so that 95 % of those that lose are vetoed, would veto {100 * least:.0f} % of the "
        "others, as with few seeds a large mean loss may still be chance."
    )
    return table(("arms", "number", "vetoed", "share"), rows) + "\n\n" + note


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def _oracle(known: Sequence[Trial]) -> float:
    """Share of harmless arms that are vetoed if the mean loss itself is the criterion."""
    losing = sorted(t.loss for t in known if t.loses)
    harmless = [t for t in known if not t.loses]
    if not losing or not harmless:
        return math.nan
    limit = losing[int(0.05 * len(losing))]
    return sum(t.loss >= limit for t in harmless) / len(harmless)


def _constants(found: Sequence[Trial]) -> str:
    tasks = list(dict.fromkeys(t.setting.task for t in found))
    groups = [("all tasks", list(found))]
    groups += [(f"without {task}", [t for t in found if t.setting.task != task]) for task in tasks]
    rows = []
    for name, mine in groups:
        rows.append([name, *(f"{delay:.3f}" for delay in constants(mine).values())])
    return table(("everything one step late, at a turn of 1", *constants(found)), rows)


def _auto(outcomes: Outcomes) -> str:
    rows = [
        [
            setting.title,
            str(len(exact.losses)),
            f"{exact.mean:.3f} ± {exact.interval:.3f}",
            f"{mine.mean:.3f}",
            f"{mine.over(exact):.2f}",
            verdict(mine, exact) if set(said) != {"synchronous"} else "equal",
            ", ".join(f"{name} {count}" for name, count in sorted(said.items())),
        ]
        for setting, exact, mine, said in auto(outcomes)
    ]
    head = ("setting", "seeds", "synchronous", "auto", "ratio", "against synchronous", "chose")
    return table(head, rows)
