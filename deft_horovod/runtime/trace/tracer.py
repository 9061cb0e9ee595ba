"""Follows one optimizer and writes what it sees: steps, windows, messages, updates."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from deft_horovod.base.trace import Event, Line, MessageSpan, StepSpan
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents, tensor_names
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.follower import Follower, Wish
from deft_horovod.runtime.ranks.clock_offset import ClockOffset
from deft_horovod.runtime.reduce.installed import Boundary
from deft_horovod.runtime.reduce.planned import PlannedReducer

_UNSEEN: Final = ("horovod",)  # links, before there is a plan
_REMEMBERED_STEPS: Final = 64


@dataclass
class _Followed:
    """A plan at work, and where its step 0 lies in the job."""

    planned: weakref.ref[PlannedReducer]
    plan: Plan
    tensors: list[list[str]]
    offset: int
    free_us: list[float]  # of each link: when it had carried its latest message


class Tracer(Follower[Boundary]):
    """From the first plan on, for so many steps."""

    def __init__(
        self,
        write: Callable[[list[Event]], None],
        line: Line,
        clock: ClockOffset,
        steps: int,
    ) -> None:
        self._write, self._line, self._clock = write, line, clock
        self._left = steps
        self._messages = 0
        self._asked_us: float | None = None
        self._done_us: float | None = None
        self._followed: _Followed | None = None
        self._open: dict[int, MessageSpan] = {}  # arrows that have no end yet, by number
        self._boundaries_us: dict[int, float] = {}  # of the latest steps
        self._updated_us: float | None = None
        write([*line.heads(_UNSEEN), self._told_of_clock()])

    def begin_boundary(self) -> None:
        self._asked_us = _now_us()

    def updated(self) -> None:
        self._updated_us = _now_us()

    def end_boundary(self, at: Boundary) -> Wish:
        if self._left > 0:
            self._write_step(at.step, at.planned, at.collected)
        return Wish.NOTHING

    def _write_step(
        self, step: int, planned: PlannedReducer | None, collected: native.Collected | None
    ) -> None:
        began_us, self._done_us = self._done_us, _now_us()
        asked_us = self._done_us if self._asked_us is None else self._asked_us
        updated_us, self._updated_us = self._updated_us, None
        events: list[Event] = []
        if began_us is not None:
            backward_us = None
            if collected is not None and began_us <= collected.began_us <= asked_us:
                backward_us = float(collected.began_us)
            span = StepSpan(step, began_us, updated_us, backward_us, asked_us, self._done_us)
            events += span.events(self._line)
        if planned is not None:
            events += self._messages_of(planned, step)
        self._boundaries_us[step] = self._done_us
        self._boundaries_us.pop(step - _REMEMBERED_STEPS, None)
        events += self._end_arrows(step)
        self._write([self._aligned(event) for event in events])
        self._left -= 1

    def _messages_of(self, planned: PlannedReducer, step: int) -> list[Event]:
        followed = self._followed
        events: list[Event] = []
        if followed is None or followed.planned() is not planned:
            plan = planned.plan
            followed = self._followed = _Followed(
                weakref.ref(planned),
                plan,
                tensor_names(plan, contents(plan.slots, plan.buckets)),
                step + 1 - planned.session.step,
                [0.0] * len(plan.links),
            )
            self._open.clear()
            events += self._line.heads([link.name for link in plan.links])
        for record in sorted(planned.look_at_records(), key=lambda record: record.done_us):
            span = _message(followed, record)
            followed.free_us[span.link] = span.done_us
            self._messages += 1
            self._open[self._messages] = span
            events += span.events(self._line, self._messages, followed.tensors[span.bucket])
        return events

    def _end_arrows(self, step: int) -> list[Event]:
        ended = [number for number, span in self._open.items() if span.apply_step <= step]
        latest_us = self._boundaries_us[step]
        return [
            span.applied(self._line, n, self._boundaries_us.get(span.apply_step, latest_us))
            for n, span in [(n, self._open.pop(n)) for n in ended]
        ]

    def _told_of_clock(self) -> Event:
        args = {"offset_us": self._clock.us, "error_us": self._clock.error_us}
        return {"ph": "M", "name": "deft_clock", "pid": self._line.rank, "args": args}

    def _aligned(self, event: Event) -> Event:
        if "ts" in event:
            event["ts"] += self._clock.us
        return event


def _message(followed: _Followed, record: native.MessageRecord) -> MessageSpan:
    plan = followed.plan
    task = plan.tasks[record.task]
    generation = plan.generations[task.generation]
    cycle = record.step - task.step + followed.offset
    return MessageSpan(
        bucket=generation.bucket,
        link=task.link,
        first_step=cycle + generation.first_step,
        last_step=cycle + generation.last_step,
        apply_step=cycle + generation.apply_step,
        gated=generation.gated,
        bytes=record.bytes,
        ready_us=record.ready_us,
        sent_us=record.sent_us,
        starts_us=max(record.sent_us, followed.free_us[task.link]),
        done_us=record.done_us,
    )


def _now_us() -> float:
    return float(native.steady_us())
