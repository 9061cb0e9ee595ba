"""Timelines as rectangles: compute in the first row, a row for each link; and their colours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from deft_horovod.base.size import size_text
from deft_horovod.plan import Plan
from deft_horovod.plan.rows import bucket_rows
from deft_horovod.plan.words import class_text, generation_class, many
from deft_horovod.profile import Profile
from deft_horovod.simulate.stock import StockMessage, StockStep
from deft_horovod.solver.predict.timeline import Timeline

# Colours that people who see no difference between red and green can tell apart.
STAGE_COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {"forward": "#dbe4ee", "backward": "#b4c3d4", "update": "#6d7f94"}
)
CLASS_COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "synchronous": "#2f6fb3",
        "gated": "#4fb3a5",
        "delayed": "#f0a030",
        "merged": "#9a66b0",
    }
)
WAITING: Final = "waiting"
WAIT_COLOUR: Final = "#c0392b"
DARK_KINDS: Final = frozenset({"synchronous", "merged", "update"})  # with white letters

_FEWEST_STEPS: Final = 2


@dataclass(frozen=True)
class Bar:
    """A rectangle of the picture."""

    row: int  # 0: compute, then the links
    begins_us: float
    ends_us: float
    kind: str  # a stage, "waiting", or how a message is applied
    label: str = ""
    step: int | None = None  # of a stage
    detail: str = ""  # of a message: what it is, in words


def plan_periods(plan: Plan) -> int:
    """How many have to be seen, so that there are two steps."""
    return math.ceil(_FEWEST_STEPS / plan.period)


def plan_bars(plan: Plan, timeline: Timeline, duration_us: float | None = None) -> list[Bar]:
    """What is seen of the steady state in that time, the rest cut off at the edges.

    Without a time: whole periods, as few as have two steps.
    """
    end_us = plan_periods(plan) * timeline.period_us if duration_us is None else duration_us
    return _repeated(_one_period(plan, timeline), timeline.period_us, plan.period, end_us)


def stock_bars(
    step: StockStep,
    profile: Profile,
    duration_us: float,
    details: Sequence[str] | None = None,
) -> list[Bar]:
    """The same for steps between which nothing is in flight; all messages are on the first link.

    `details` has a text for each message, in the place of the number of its members.
    """
    return _repeated(_one_step(step, profile, details), step.step_us, 1, duration_us)


def _repeated(found: Iterable[Bar], period_us: float, steps: int, end_us: float) -> list[Bar]:
    """Bars of one period, in all periods that lie between 0 and the end."""
    if period_us <= 0.0:
        return []
    periods = math.ceil(end_us / period_us)
    shown = []
    for bar in found:
        if bar.ends_us <= bar.begins_us:
            continue
        earlier = math.ceil(bar.ends_us / period_us)
        for shift in range(-earlier, periods):
            begins_us = max(0.0, bar.begins_us + shift * period_us)
            ends_us = min(end_us, bar.ends_us + shift * period_us)
            if begins_us < ends_us:
                step = None if bar.step is None else bar.step + shift * steps
                shown.append(replace(bar, begins_us=begins_us, ends_us=ends_us, step=step))
    return shown


def _one_period(plan: Plan, timeline: Timeline) -> Iterator[Bar]:
    """Stages are cut where compute waits inside them."""
    waits = sorted((wait.begins_us, wait.ends_us) for wait in timeline.waits)
    for begins_us, ends_us in waits:
        yield Bar(0, begins_us, ends_us, WAITING)
    for span in timeline.stages:
        from_us = span.begins_us
        inside = [wait for wait in waits if span.begins_us <= wait[0] and wait[1] <= span.ends_us]
        for wait_begins_us, wait_ends_us in inside:
            yield Bar(0, from_us, wait_begins_us, span.stage, step=span.step)
            from_us = wait_ends_us
        yield Bar(0, from_us, span.ends_us, span.stage, step=span.step)
    rows = bucket_rows(plan)
    for message in timeline.messages:
        generation = plan.generations[plan.tasks[message.task].generation]
        delay, merged, gated = generation_class(generation)
        kind = "merged" if merged > 1 else "delayed" if delay else "synchronous"
        if gated and kind == "synchronous":
            kind = "gated"
        row = rows[generation.bucket]
        what = f"bucket {row.bucket}: {size_text(row.bytes)}, {row.carries}"
        yield Bar(
            row=message.link + 1,
            begins_us=message.starts_us,
            ends_us=message.arrives_us,
            kind=kind,
            label=str(row.bucket),
            detail=f"{what}, {class_text(delay, merged, gated)}",
        )


def _one_step(step: StockStep, profile: Profile, details: Sequence[str] | None) -> Iterator[Bar]:
    """What is not there when backward ends is waited for."""
    backward_us = profile.forward_us
    ended_us = backward_us + profile.backward_us
    update_us = ended_us + step.exposed_us
    yield Bar(0, 0.0, backward_us, "forward", step=0)
    yield Bar(0, backward_us, ended_us, "backward", step=0)
    yield Bar(0, ended_us, update_us, WAITING)
    yield Bar(0, update_us, update_us + profile.optimizer_us, "update", step=0)
    for number, message in enumerate(step.messages):
        what = _members_text(message) if details is None else details[number]
        yield Bar(
            row=1,
            begins_us=backward_us + message.starts_us,
            ends_us=backward_us + message.arrives_us,
            kind="synchronous",
            label=size_text(message.bytes),
            detail=f"{what}, {size_text(message.bytes)}",
        )


def _members_text(message: StockMessage) -> str:
    count = len(message.members)
    return f"{many(count, 'tensor')}{' fused' if count > 1 else ''}"
