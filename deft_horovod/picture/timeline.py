"""A plan as a picture: the timeline that its profile predicts, compute above, a row for each link.

    python -m deft_horovod.picture.timeline plan.json profile.json [picture.png]

prints the plan as text and, given a third name, draws it (.png, .svg, .pdf). Drawing needs
matplotlib, which the extra ``plot`` installs.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deft_horovod.errors import DeftError
from deft_horovod.picture.bars import (
    CLASS_COLOURS,
    DARK_KINDS,
    STAGE_COLOURS,
    WAIT_COLOUR,
    WAITING,
    Bar,
    plan_bars,
    plan_periods,
)
from deft_horovod.picture.figure import new_figure
from deft_horovod.plan import Plan
from deft_horovod.profile import Profile
from deft_horovod.solver.predict.prediction import predict
from deft_horovod.solver.predict.timeline import Timeline, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES: Final = 13.0
_ROW_INCHES: Final = 0.75
_LEFT_INCHES, _RIGHT_INCHES, _TOP_INCHES, _BOTTOM_INCHES = 1.4, 0.3, 0.6, 0.8
_LABEL_POINTS: Final = 7.0
# Of a letter in the default font, in units of its size; with some air around.
_LETTER_WIDTH: Final = 0.66
_BAR: Final = 0.72  # of a row
_EDGE_POINTS: Final = 2.5  # narrower bars have no edge, which would hide their colour

_USAGE: Final = (
    "usage: python -m deft_horovod.picture.timeline plan.json profile.json [picture.png]"
)


def draw(plan: Plan, profile: Profile) -> Figure:
    """A figure that belongs to no window; `savefig` writes it."""
    timeline = simulate(plan, profile)
    used = sorted({task.link for task in plan.tasks})
    rows = {0: 0, **{link + 1: row for row, link in enumerate(used, start=1)}}
    shown = [replace(bar, row=rows[bar.row]) for bar in plan_bars(plan, timeline)]
    height = _TOP_INCHES + _BOTTOM_INCHES + _ROW_INCHES * len(rows)
    left, bottom = _LEFT_INCHES / _WIDTH_INCHES, _BOTTOM_INCHES / height
    figure = new_figure(_WIDTH_INCHES, height)
    axes = figure.add_axes(
        (
            left,
            bottom,
            1.0 - left - _RIGHT_INCHES / _WIDTH_INCHES,
            1.0 - bottom - _TOP_INCHES / height,
        )
    )
    end_us = max((bar.ends_us for bar in shown), default=1.0)
    axes.set_xlim(0.0, end_us / 1000)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    _draw_bars(axes, shown, end_us)
    _draw_labels(axes, shown, end_us)
    _draw_steps(axes, plan, timeline)
    links = (f"{plan.links[link].name}\n{timeline.link_busy[link]:.0%} busy" for link in used)
    axes.set_yticks(range(len(rows)), ["compute", *links])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("milliseconds", loc="right")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_title(_title(plan, timeline), fontsize=10, loc="left")
    _draw_legend(figure, shown, left)
    return figure


def _points(bar: Bar, end_us: float) -> float:
    """How wide it is drawn."""
    inches = _WIDTH_INCHES - _LEFT_INCHES - _RIGHT_INCHES
    return (bar.ends_us - bar.begins_us) / end_us * inches * 72


def _draw_bars(axes: Axes, shown: Sequence[Bar], end_us: float) -> None:
    colours = {**STAGE_COLOURS, **CLASS_COLOURS, WAITING: "white"}
    alike: dict[tuple[int, str, bool], list[tuple[float, float]]] = defaultdict(list)
    for bar in shown:
        has_edge = bar.kind != WAITING and _points(bar, end_us) >= _EDGE_POINTS
        span = (bar.begins_us / 1000, (bar.ends_us - bar.begins_us) / 1000)
        alike[bar.row, bar.kind, has_edge].append(span)
    for (row, kind, has_edge), spans in sorted(alike.items()):
        axes.broken_barh(
            spans,
            (row - _BAR / 2, _BAR),
            facecolors=colours[kind],
            edgecolor=WAIT_COLOUR if kind == WAITING else "white",
            hatch="////" if kind == WAITING else None,
            linewidth=0.5 if has_edge else 0.0,
        )


def _draw_steps(axes: Axes, plan: Plan, timeline: Timeline) -> None:
    """A line where each step begins."""
    for shift in range(plan_periods(plan)):
        for span in timeline.stages:
            if span.stage == "forward":
                begins_ms = (span.begins_us + shift * timeline.period_us) / 1000
                axes.axvline(begins_ms, color="#666666", linewidth=0.7, linestyle=":", zorder=0)


def _draw_labels(axes: Axes, shown: Sequence[Bar], end_us: float) -> None:
    """Only where they fit into their own bar, so that no two can overlap."""
    for bar in shown:
        labels = [bar.label]
        if bar.step is not None:
            labels = [f"{bar.kind} {bar.step}", f"{bar.kind[0].upper()}{bar.step}"]
        room = _points(bar, end_us) / (_LETTER_WIDTH * _LABEL_POINTS)
        label = next((text for text in labels if text and len(text) + 0.5 <= room), None)
        if label is None:
            continue
        axes.text(
            (bar.begins_us + bar.ends_us) / 2000,
            bar.row,
            label,
            ha="center",
            va="center",
            fontsize=_LABEL_POINTS,
            color="white" if bar.kind in DARK_KINDS else "black",
        )


def _title(plan: Plan, timeline: Timeline) -> str:
    head = f"plan '{plan.policy}', period {plan.period}"
    if not plan.tasks:
        return f"{head}\nall communication is Horovod's own and not in this picture"
    step_ms, compute_ms = timeline.step_us / 1000, timeline.compute_us / 1000
    text = f"{head}\nstep {step_ms:.2f} ms = compute {compute_ms:.2f} + exposed "
    text += f"{timeline.exposed_us / 1000:.2f}"
    return text if timeline.steady else f"{text}; a link's backlog is still growing here"


def _draw_legend(figure: Figure, shown: Sequence[Bar], left: float) -> None:
    from matplotlib.patches import Patch

    kinds = {bar.kind for bar in shown}
    patches = [
        Patch(facecolor=colour, label=kind)
        for kind, colour in {**STAGE_COLOURS, **CLASS_COLOURS}.items()
        if kind in kinds
    ]
    if WAITING in kinds:
        patches.append(Patch(facecolor="white", edgecolor=WAIT_COLOUR, hatch="////", label=WAITING))
    figure.legend(
        handles=patches,
        ncols=max(1, len(patches)),
        loc="lower left",
        bbox_to_anchor=(left, 0.0),
        frameon=False,
        fontsize=8,
        borderaxespad=0.3,
    )


def main(arguments: Sequence[str]) -> int:
    """Reads a plan and a profile, prints the plan, and draws it if asked to."""
    if len(arguments) not in (2, 3):
        print(_USAGE, file=sys.stderr)
        return 2
    plan_path, profile_path, *picture_paths = arguments
    try:
        plan, profile = Plan.load(plan_path), Profile.load(profile_path)
        print((plan if plan.prediction else predict(plan, profile)).describe())
        for path in picture_paths:
            draw(plan, profile).savefig(Path(path))
    except (DeftError, OSError, ValueError) as error:
        print(f"deft_horovod: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
