"""Traces: events in the Trace Event Format, which Perfetto and chrome://tracing read.

A rank is a process of the trace, an optimizer has one track for its training thread, one for the
windows of its plan, and one for each link. An arrow leads from the moment when the last gradient of
a message was ready over the message to the update.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Event = dict[str, Any]

TRAINING: Final = 0
WINDOWS: Final = 1
FIRST_LINK: Final = 2
_TRACKS: Final = 16  # of an optimizer
# Behind the moment itself, so that the arrow ends in what begins there.
_INSIDE_US: Final = 0.5
_MOST_NAMES: Final = 8


@dataclass(frozen=True)
class Line:
    """Where the events of one optimizer on one rank are drawn."""

    rank: int
    optimizer: int = 0

    def track(self, number: int) -> dict[str, int]:
        """The fields that put an event on a track."""
        return {"pid": self.rank, "tid": self.optimizer * _TRACKS + number}

    def heads(self, links: Sequence[str]) -> list[Event]:
        """Names and order of its tracks."""
        names = ["training", "windows", *(f"link {link}" for link in links)]
        titles = [f"optimizer {self.optimizer}: {name}" for name in names]
        found: list[Event] = [
            {"ph": "M", "name": "process_name", "pid": self.rank, "args": {"name": self._name}},
            {"ph": "M", "name": "process_sort_index", "pid": self.rank}
            | {"args": {"sort_index": self.rank}},
        ]
        for number, title in enumerate(titles):
            found.append(_head("thread_name", self.track(number), {"name": title}))
            place = {"sort_index": self.track(number)["tid"]}
            found.append(_head("thread_sort_index", self.track(number), place))
        return found

    @property
    def _name(self) -> str:
        return f"rank {self.rank}"


def _head(what: str, track: Mapping[str, int], args: Event) -> Event:
    return {"ph": "M", "name": what, **track, "args": args}


@dataclass(frozen=True)
class StepSpan:
    """One step on the training thread, from the end of a wait to the end of the next."""

    number: int
    began_us: float
    updated_us: float | None  # the optimizer had updated; None: not seen
    backward_us: float | None  # backward began; None: it was not seen
    asked_us: float  # for the averages
    done_us: float  # they were there

    def events(self, line: Line) -> list[Event]:
        """The step with its stages, and the two windows of a plan."""
        updated_us = self.began_us if self.updated_us is None else self.updated_us
        backward_us = self.asked_us if self.backward_us is None else self.backward_us
        marks = [self.began_us, updated_us, backward_us, self.asked_us, self.done_us]
        for place in range(1, len(marks)):  # threads may see them in another order
            marks[place] = max(marks[place], marks[place - 1])
        stages = ("optimizer", "forward", "backward", "waiting")
        training, windows = line.track(TRAINING), line.track(WINDOWS)
        spans = zip(stages, marks, marks[1:], strict=False)
        return [
            _slice(training, f"step {self.number}", "step", marks[0], marks[-1]),
            *(_slice(training, name, "stage", a, b) for name, a, b in spans if b > a),
            _slice(windows, f"forward of {self.number}", "window", marks[0], marks[2]),
            _slice(windows, f"backward of {self.number}", "window", marks[2], marks[-1]),
        ]


@dataclass(frozen=True)
class MessageSpan:
    """One message, with what the plan says of it; steps are those of the job."""

    bucket: int
    link: int
    first_step: int
    last_step: int
    apply_step: int
    gated: bool
    bytes: int
    ready_us: float
    sent_us: float
    starts_us: float  # the link had nothing else to carry
    done_us: float

    @property
    def name(self) -> str:
        steps = (
            f"step {self.last_step}"
            if self.first_step == self.last_step
            else f"steps {self.first_step}-{self.last_step}"
        )
        return f"bucket {self.bucket} of {steps}"

    def events(self, line: Line, number: int, tensors: Sequence[str]) -> list[Event]:
        """On its link; `number`: of the message, unique on the rank."""
        track = line.track(FIRST_LINK + self.link)
        names = [*tensors[:_MOST_NAMES]]
        if len(tensors) > _MOST_NAMES:
            names.append(f"and {len(tensors) - _MOST_NAMES} more")
        args = {
            "bytes": self.bytes,
            "tensors": names,
            "steps": [self.first_step, self.last_step],
            "applied after step": self.apply_step,
            "gated": self.gated,
            "waited for the link, us": self.starts_us - self.ready_us,
        }
        flow = arrow(line, number, self.name)
        life = {"cat": "message", "name": self.name, "id": flow["id"], **track}
        return [
            _slice(track, self.name, "message", self.starts_us, self.done_us, args),
            {"ph": "b", "ts": self.ready_us, **life, "args": {"sent": self.sent_us}},
            {"ph": "e", "ts": self.done_us, **life},
            {"ph": "s", "ts": self.ready_us, **flow, **line.track(TRAINING)},
            {"ph": "t", "ts": self.starts_us, **flow, **track},
        ]

    def applied(self, line: Line, number: int, boundary_us: float) -> Event:
        """The end of its arrow: the update, or the gate behind which it waits."""
        at_us = max(boundary_us, self.done_us) if self.gated else boundary_us
        flow = arrow(line, number, self.name)
        return {"ph": "f", "bp": "e", "ts": at_us + _INSIDE_US, **flow, **line.track(TRAINING)}


def arrow(line: Line, number: int, name: str) -> Event:
    """What the events of one arrow have in common."""
    return {"cat": "gradient", "name": name, "id": f"{line.rank}.{line.optimizer}.{number}"}


def _slice(
    track: Mapping[str, int],
    name: str,
    kind: str,
    begin_us: float,
    end_us: float,
    args: Event | None = None,
) -> Event:
    took_us = max(0.0, end_us - begin_us)
    more = {} if args is None else {"args": args}
    return {"ph": "X", "name": name, "cat": kind, **track, "ts": begin_us, "dur": took_us, **more}


def lines_of(events: Iterable[Event]) -> str:
    """As elements of the format's JSON array, which may lack its end: a rank can write as it goes,
    and what a killed one has written is still a trace."""
    return "".join(json.dumps(event, separators=(",", ":")) + ",\n" for event in events)
