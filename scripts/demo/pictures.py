"""Where the time went, and what the losses did: one picture, and the report as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from deft_horovod.cli.inputs import parameters_for
from deft_horovod.comparison import Comparison
from deft_horovod.picture.bars import STAGE_COLOURS, WAIT_COLOUR
from deft_horovod.picture.figure import new_figure
from deft_horovod.report.basics.findings import ReportInputs, findings
from deft_horovod.report.page import page
from scripts.demo.outcome import ALONE, STOCK, TITLES, Outcome

_SIZE_INCHES: Final = (11.0, 3.6)
# Okabe and Ito's, which people who see no difference between red and green can tell apart.
_COLOURS: Final = ("#000000", "#e69f00", "#009e73", "#0072b2")


def draw(outcome: Outcome, path: Path) -> None:
    """Steps on the left, losses on the right."""
    figure = new_figure(*_SIZE_INCHES)
    steps, losses = figure.subplots(1, 2)
    alone_ms = outcome.arms[ALONE].step_ms
    stock_ms = outcome.arms[STOCK].step_ms
    shown = [name for name in TITLES if name != ALONE]
    for row, name in enumerate(shown):
        step_ms = outcome.arms[name].step_ms
        waiting_ms = max(0.0, step_ms - alone_ms)
        steps.barh(row, min(alone_ms, step_ms), color=STAGE_COLOURS["backward"], height=0.6)
        steps.barh(
            row, waiting_ms, left=alone_ms, color="white", edgecolor=WAIT_COLOUR, hatch="////",
            height=0.6,
        )  # fmt: skip
        text = f" {step_ms:.0f} ms" + (f", {stock_ms / step_ms:.2f}x" if name != STOCK else "")
        steps.text(max(step_ms, alone_ms), row, text, va="center", fontsize=8)
    steps.set_yticks(range(len(shown)), [TITLES[name] for name in shown], fontsize=8)
    steps.invert_yaxis()
    steps.set_xlim(0.0, 1.25 * max(outcome.arms[name].step_ms for name in shown))
    steps.set_title(
        "a step: computing, and waiting for gradients (hatched)", fontsize=9, loc="left"
    )
    steps.set_xlabel("milliseconds", fontsize=8)
    for name, colour in zip(shown, _COLOURS, strict=True):
        known = outcome.arms[name].losses[: outcome.steps]
        dashed = (0, (4, 2 + 2 * shown.index(name)))  # curves may lie on each other
        losses.plot(range(1, len(known) + 1), known, color=colour, linestyle=dashed, linewidth=1.2)
    losses.legend([TITLES[name] for name in shown], fontsize=7, frameon=False)
    losses.set_title("loss on the same batches", fontsize=9, loc="left")
    losses.set_xlabel("step", fontsize=8)
    for axes in (steps, losses):
        axes.tick_params(labelsize=7)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)


def write_report(comparison: Comparison, path: Path) -> None:
    """As `deft-profile report` does."""
    parameters = parameters_for(comparison.profile, comparison.ours.plan)
    found = findings(ReportInputs.compared("the demo", comparison, parameters))
    path.write_text(page(found), encoding="utf-8")
