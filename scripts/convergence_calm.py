"""What `auto` comes to where it is left to itself: late once the learning rate is low."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from convergence_lateness import Arm
from convergence_report import Cell, Setting, loss_text, ratio_text, verdict

from deft_horovod.runtime.rate_watch import CALM

_OURS: Final = Arm(-1, 1, 1, "local", below=CALM)
_UNCORRECTED: Final = Arm(-1, 1, 1, "none", below=CALM)
_FROM_THE_START: Final = Arm(-1, 1, 1, "none")
_INTRODUCTION: Final = f"""\
Once the learning rate has fallen to {CALM:g} of its highest, *everything* comes one step late, and
is predicted (`local`). It is the most that `auto` does by itself: it delays what nothing else
hides, and no more than its budget affords. *Within*: the mean lies in the 95 % interval of
synchronous training. Beside it the same uncorrected, and uncorrected from step {Arm.warmup} on."""


def calm_arms() -> list[Arm]:
    """Uncorrected, and as `auto` does."""
    return [_UNCORRECTED, _OURS]


def calm_section(found: Mapping[Setting, Sequence[Cell]]) -> str:
    """Of the settings in which synchronous training converges; empty where nothing was tried."""
    rows, within = [], 0
    for setting, row in found.items():
        exact, of = row[0], {cell.arm: cell for cell in row}
        ours = of.get(_OURS)
        if ours is None or not math.isfinite(exact.mean):
            continue
        inside = abs(ours.mean - exact.mean) <= exact.interval
        within += inside
        cells = [
            setting.title,
            str(len(ours.losses)),
            loss_text(exact),
            loss_text(ours),
            f"{ours.over(exact):.3f}",
            "yes" if inside else "no",
            verdict(ours, exact),
            *(_ratio(of.get(arm), exact) for arm in (_UNCORRECTED, _FROM_THE_START)),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    if not rows:
        return ""
    head = (
        "| setting | seeds | synchronous | auto | ratio | within | beyond chance | uncorrected | "
        f"from the start |\n|{' --- |' * 9}"
    )
    said = f"Within in {within} of {len(rows)} settings."
    return "\n\n".join(["## `auto`, left to itself", _INTRODUCTION, said, "\n".join([head, *rows])])


def _ratio(cell: Cell | None, exact: Cell) -> str:
    if cell is None:
        return ""
    ratio = cell.over(exact)
    return ratio_text(ratio) if math.isfinite(ratio) else "diverged"
