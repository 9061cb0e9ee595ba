"""What `auto` comes to with a budget for late updates: late once the learning rate is low."""

from __future__ import annotations

import math
from typing import Final

from deft_horovod.runtime.decide.rate_watch import CALM
from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.preserver import Rung, auto
from scripts.studies.convergence.report import Cell, Outcomes, cells, loss_text, ratio_text, verdict
from scripts.studies.convergence.training import first_late
from scripts.studies.formats.noninferior import difference, holm

_UNCORRECTED: Final = Arm(-1, 1, 1, "none", below=CALM[0])
# Tried and rejected: of these a run collapses.
_EARLIER: Final = Arm(-1, 1, 1, "local", below=0.95, share=0.5)
_FROM_THE_START: Final = Arm(-1, 1, 1, "none")
_INTRODUCTION: Final = f"""\
Once the learning rate has fallen to {CALM[0]:g} of its highest, the product's formula judges by
the gradients of that tenth of the training whether *everything* may come one step late from there
on, predicted (`local`); if not, it is asked again at {CALM[1]:g}, and where that costs too much as
well, training stays synchronous. `auto` does less: it delays what nothing else hides, and where all
of that is too much, a part. *Non-inferior*: the loss is higher by less than the margin, 1 % for the
transformer, 2 % for the others (Student's one-sided test of logarithms by seeds, 5 % over all
settings by Holm's correction); *below*: with 95 % confidence, without that correction. *All*:
everything late from {CALM[0]:g} on whatever it costs; *earlier*: from {_EARLIER.below:g} on,
of what forward uses first {_EARLIER.share:.0%} of the bytes; beside them everything uncorrected
from {CALM[0]:g}, and from step {Arm.warmup} on."""


def calm_arms() -> list[Arm]:
    """What `auto` does not do, and what it chooses from, the latest first."""
    return [_UNCORRECTED, _EARLIER, *(rung.arm for rung in _LADDER)]


def _rung(below: float) -> Rung:
    arm = Arm(-1, 1, 1, "local", below=below)
    tenth = 10 * first_late(arm, 1000) // 1000
    return Rung(f"from {below:g}", arm, tenth, tenth + 1)


_LADDER: Final = tuple(map(_rung, CALM))
_MARGINS: Final = {"transformer": 0.01}
_MARGIN: Final = 0.02
_LEVEL: Final = 0.05
_PROVEN: Final = 6  # the column
_WHATEVER_IT_COSTS: Final = (_LADDER[0].arm, _EARLIER, _UNCORRECTED, _FROM_THE_START)


def calm_section(outcomes: Outcomes) -> str:
    """Of the settings in which synchronous training converges; empty where nothing was tried."""
    rows, compared, found = [], [], cells(outcomes)
    for setting, exact, ours, chose in auto(outcomes, _LADDER):
        of = {cell.arm: cell for cell in found[setting]}
        margin = _MARGINS.get(setting.task, _MARGIN)
        one = difference(ours.losses, exact.losses, margin)
        if _LADDER[0].arm not in of or one is None:
            continue
        compared.append(one)
        rows.append(
            [
                setting.title,
                str(len(ours.losses)),
                loss_text(exact),
                loss_text(ours),
                f"{ours.over(exact):.3f}",
                f"{math.exp(one.upper):.3f}",
                "",
                "equal" if set(chose) == {"synchronous"} else verdict(ours, exact),
                ", ".join(f"{name} {count}" for name, count in sorted(chose.items())),
                *(_ratio(of.get(arm), exact) for arm in _WHATEVER_IT_COSTS),
            ]
        )
    if not rows:
        return ""
    proven = holm([one.p_value for one in compared], _LEVEL)
    for row, yes in zip(rows, proven, strict=True):
        row[_PROVEN] = "yes" if yes else "not decided"
    head = (
        "| setting | seeds | synchronous | auto | ratio | below | non-inferior | beyond chance "
        "| late | all | earlier | uncorrected | from the start |\n|" + 13 * " --- |"
    )
    said = f"Non-inferior: {sum(proven)} of {len(rows)} settings."
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n\n".join(["## `auto` with a budget", _INTRODUCTION, said, "\n".join([head, *lines])])


def _ratio(cell: Cell | None, exact: Cell) -> str:
    if cell is None:
        return ""
    ratio = cell.over(exact)
    return ratio_text(ratio) if math.isfinite(ratio) else "diverged"
