"""A plan as a picture: the timeline that its profile predicts, compute above, a row for each link.

    python -m deft_horovod.plan_picture plan.json profile.json [picture.png]

prints the plan as text and, given a third name, draws it (.png, .svg, .pdf). Drawing needs
matplotlib, which the extra ``plot`` installs.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deft_horovod.drawing import new_figure
from deft_horovod.errors import DeftError
from deft_horovod.plan import Plan
from deft_horovod.plan_words import generation_class
from deft_horovod.profile import Profile
from deft_horovod.solver.prediction import predict
from deft_horovod.solver.timeline import Timeline, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that people who see no difference between red and green can tell apart.
_STAGES: Final = {"forward": "#dbe4ee", "backward": "#b4c3d4", "update": "#6d7f94"}
_CLASSES: Final = {
    "synchronous": "#2f6fb3",
    "gated": "#4fb3a5",
    "delayed": "#f0a030",
    "merged": "#9a66b0",
}
_WAIT: Final = "#c0392b"
_DARK: Final = frozenset({"synchronous", "merged", "update"})  # with white letters

_FEWEST_STEPS: Final = 2
_WIDTH_INCHES: Final = 13.0
_ROW_INCHES: Final = 0.75
_LEFT_INCHES, _RIGHT_INCHES, _TOP_INCHES, _BOTTOM_INCHES = 1.4, 0.3, 0.6, 0.8
_LABEL_POINTS: Final = 7.0
# Of a letter in the default font, in units of its size; with some air around.
_LETTER_WIDTH: Final = 0.66
_BAR: Final = 0.72  # of a row
_EDGE_POINTS: Final = 2.5  # narrower bars have no edge, which would hide their colour

_USAGE: Final = "usage: python -m deft_horovod.plan_picture plan.json profile.json [picture.png]"


@dataclass(frozen=True)
class Bar:
    """A rectangle of the picture."""

    row: int  # 0: compute, then the links
    begins_us: float
    ends_us: float
    kind: str  # a stage, "waiting", or how a message is applied
    label: str = ""
    step: int | None = None  # of a stage


def bars(plan: Plan, timeline: Timeline) -> list[Bar]:
    """What is seen in at least two steps of the steady state, the rest cut off at the edges."""
    periods = _periods(plan)
    end_us = periods * timeline.period_us
    found = []
    for bar in _one_period(plan, timeline):
        if bar.ends_us <= bar.begins_us:
            continue
        earlier = math.ceil(bar.ends_us / timeline.period_us)
        for shift in range(-earlier, periods):
            begins_us = max(0.0, bar.begins_us + shift * timeline.period_us)
            ends_us = min(end_us, bar.ends_us + shift * timeline.period_us)
            if begins_us < ends_us:
                step = None if bar.step is None else bar.step + shift * plan.period
                found.append(replace(bar, begins_us=begins_us, ends_us=ends_us, step=step))
    return found


def _periods(plan: Plan) -> int:
    """How many are shown."""
    return math.ceil(_FEWEST_STEPS / plan.period)


def draw(plan: Plan, profile: Profile) -> Figure:
    """A figure that belongs to no window; `savefig` writes it."""
    timeline = simulate(plan, profile)
    used = sorted({task.link for task in plan.tasks})
    rows = {0: 0, **{link + 1: row for row, link in enumerate(used, start=1)}}
    shown = [replace(bar, row=rows[bar.row]) for bar in bars(plan, timeline)]
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


def _one_period(plan: Plan, timeline: Timeline) -> Iterator[Bar]:
    """Stages are cut where compute waits inside them."""
    waits = sorted((wait.begins_us, wait.ends_us) for wait in timeline.waits)
    for begins_us, ends_us in waits:
        yield Bar(0, begins_us, ends_us, "waiting")
    for span in timeline.stages:
        from_us = span.begins_us
        inside = [wait for wait in waits if span.begins_us <= wait[0] and wait[1] <= span.ends_us]
        for wait_begins_us, wait_ends_us in inside:
            yield Bar(0, from_us, wait_begins_us, span.stage, step=span.step)
            from_us = wait_ends_us
        yield Bar(0, from_us, span.ends_us, span.stage, step=span.step)
    for message in timeline.messages:
        generation = plan.generations[plan.tasks[message.task].generation]
        delay, merged, gated = generation_class(generation)
        kind = "merged" if merged > 1 else "delayed" if delay else "synchronous"
        if gated and kind == "synchronous":
            kind = "gated"
        label = str(generation.bucket)
        yield Bar(message.link + 1, message.starts_us, message.arrives_us, kind, label)


def _points(bar: Bar, end_us: float) -> float:
    """How wide it is drawn."""
    inches = _WIDTH_INCHES - _LEFT_INCHES - _RIGHT_INCHES
    return (bar.ends_us - bar.begins_us) / end_us * inches * 72


def _draw_bars(axes: Axes, shown: Sequence[Bar], end_us: float) -> None:
    colours = {**_STAGES, **_CLASSES, "waiting": "white"}
    alike: dict[tuple[int, str, bool], list[tuple[float, float]]] = defaultdict(list)
    for bar in shown:
        has_edge = bar.kind != "waiting" and _points(bar, end_us) >= _EDGE_POINTS
        span = (bar.begins_us / 1000, (bar.ends_us - bar.begins_us) / 1000)
        alike[bar.row, bar.kind, has_edge].append(span)
    for (row, kind, has_edge), spans in sorted(alike.items()):
        axes.broken_barh(
            spans,
            (row - _BAR / 2, _BAR),
            facecolors=colours[kind],
            edgecolor=_WAIT if kind == "waiting" else "white",
            hatch="////" if kind == "waiting" else None,
            linewidth=0.5 if has_edge else 0.0,
        )


def _draw_steps(axes: Axes, plan: Plan, timeline: Timeline) -> None:
    """A line where each step begins."""
    for shift in range(_periods(plan)):
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
            color="white" if bar.kind in _DARK else "black",
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
        for kind, colour in {**_STAGES, **_CLASSES}.items()
        if kind in kinds
    ]
    if "waiting" in kinds:
        patches.append(Patch(facecolor="white", edgecolor=_WAIT, hatch="////", label="waiting"))
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
