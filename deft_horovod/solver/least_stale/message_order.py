"""Sequence: the order in which the messages of a period leave on each link.

The training loop is played through, step after step, until a period repeats the order of the one
before. A link that is free takes, of the messages that are ready, the one that is due first. It
does not interrupt what it has begun, so there are two ways:

- *eager*: it never idles while something may leave;
- *patient*: it idles (or takes a shorter message) where the one it would begin makes another late
  that is not ready yet but more urgent.

Neither is better for all plans, so callers may ask for both and compare. Messages of a
period leave before all of the next one, as in the executor, which sends its list in turn.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from deft_horovod.solver.problem import Choice, Problem

_PERIODS: Final = 6
_LATE_US: Final = 1e-6


@dataclass(frozen=True)
class BucketMessage:
    """One bucket of one generation."""

    item: int
    bucket: int  # among those of its item
    step: int  # of the period, in which its last gradient comes
    link: int
    time_us: float
    ready_us: float  # since the backward of that step began
    due_step: int
    gate_us: float | None  # since the forward of due_step began; None: due when its backward ends


def messages_of(problem: Problem, choices: Sequence[Choice], period: int) -> list[BucketMessage]:
    found = []
    for index, (item, choice) in enumerate(zip(problem.items, choices, strict=True)):
        gate_us = item.need_us if choice.gated else None
        for step in choice.last_steps(period):
            due_step = step + choice.delay + (0 if gate_us is None else 1)
            for bucket, link in enumerate(choice.links):
                time_us = item.times_in(choice.format)[bucket][link]
                found.append(
                    BucketMessage(
                        index, bucket, step, link, time_us, item.ready_us, due_step, gate_us
                    )
                )
    return found


def sequence(
    problem: Problem, choices: Sequence[Choice], period: int, *, patient: bool
) -> tuple[BucketMessage, ...]:
    """All messages of a period, in the order in which they leave."""
    messages = messages_of(problem, choices, period)
    loop = _OrderLoop(problem, period, messages, patient)
    before: list[int] = []
    for cycle in range(_PERIODS):
        loop.play(cycle)
        order = loop.order(cycle - 1)
        if cycle > 1 and order == before:
            break
        before = order
    return tuple(messages[index] for index in before)


_Run = tuple[int, int]  # a message of a cycle
_Urgent = tuple[float, float, int]  # when it is due, when it was ready, the message


@dataclass
class _LinkQueue:
    """A link: what may leave, what soon may, and what is left of each cycle."""

    left: list[int] = field(default_factory=list)
    cycle: int = 0  # whose messages leave now
    free_us: float = 0.0
    # By cycle, the most urgent first: (due, ready, message).
    ready: dict[int, list[_Urgent]] = field(default_factory=dict)
    coming: list[tuple[float, int, _Urgent]] = field(default_factory=list)  # heap: (when, cycle, .)

    def take_what_is_ready(self) -> None:
        while self.coming and self.coming[0][0] <= self.free_us:
            _, cycle, urgent = heapq.heappop(self.coming)
            bisect.insort(self.ready.setdefault(cycle, []), urgent)

    def idle_until_next(self) -> None:
        self.free_us = max(self.free_us, self.coming[0][0])
        self.take_what_is_ready()

    def send(self, place: int, time_us: float) -> _Run:
        """The message at this place of those that are ready."""
        run = (self.ready[self.cycle].pop(place)[2], self.cycle)
        self.free_us += time_us
        self.left[self.cycle] -= 1
        while self.cycle < len(self.left) and not self.left[self.cycle]:
            self.cycle += 1
        return run


class _OrderLoop:
    def __init__(
        self, problem: Problem, period: int, messages: Sequence[BucketMessage], patient: bool
    ) -> None:
        self._problem, self._period, self._patient = problem, period, patient
        self._messages = messages
        self._cycle_us = period * problem.step_us
        self._now_us = 0.0
        self._starts: dict[_Run, float] = {}
        self._arrives: dict[_Run, float] = {}
        self._ended_us = problem.forward_us + problem.backward_us
        # Where a message is due if compute never stands still.
        self._due_us = [
            m.due_step * problem.step_us + (self._ended_us if m.gate_us is None else m.gate_us)
            for m in messages
        ]
        self._shift_us = 0.0  # what compute has stood still so far
        self._queues = [_LinkQueue() for _ in range(problem.links)]
        self._released: list[list[int]] = [[] for _ in range(period)]
        self._gated: dict[int, list[int]] = {}
        self._due: dict[int, list[int]] = {}
        for index, message in enumerate(messages):
            self._released[message.step].append(index)
            waiting = self._due if message.gate_us is None else self._gated
            waiting.setdefault(message.due_step % period, []).append(index)

    def order(self, cycle: int) -> list[int]:
        """Of a cycle that has left completely."""
        runs = [index for index, of in self._starts if of == cycle]
        return sorted(runs, key=lambda index: (self._starts[index, cycle], index))

    def play(self, cycle: int) -> None:
        for queue in self._queues:
            queue.left.append(0)
        for message in self._messages:
            self._queues[message.link].left[cycle] += 1
        for place in range(self._period):
            self._play_step(cycle * self._period + place)

    def _play_step(self, step: int) -> None:
        problem, place = self._problem, step % self._period
        begins_us = self._now_us
        self._shift_us = begins_us - step * problem.step_us
        gated = sorted(self._gated.get(place, ()), key=lambda i: self._messages[i].gate_us or 0.0)
        for index in gated:
            gate_us = self._messages[index].gate_us or 0.0
            begins_us += self._wait([index], step, begins_us + gate_us)
        self._shift_us = begins_us - step * problem.step_us
        backward_us = begins_us + problem.forward_us
        self._advance(backward_us)
        for index in self._released[place]:
            message = self._messages[index]
            urgent = (self._due_us[index], message.ready_us, index)
            coming = (backward_us + message.ready_us, step // self._period, urgent)
            heapq.heappush(self._queues[message.link].coming, coming)
        ended_us = begins_us + self._ended_us
        ended_us += self._wait(self._due.get(place, ()), step, ended_us)
        self._now_us = ended_us + problem.optimizer_us

    def _wait(self, indices: Iterable[int], step: int, now_us: float) -> float:
        """How long until all of these that are due in this step have arrived."""
        self._advance(now_us)
        latest_us = now_us
        for index in indices:
            cycle = (step - self._messages[index].due_step) // self._period
            if cycle < 0:
                continue
            queue = self._queues[self._messages[index].link]
            while (index, cycle) not in self._arrives:
                self._send_one(queue)
            latest_us = max(latest_us, self._arrives[index, cycle])
        return latest_us - now_us

    def _advance(self, until_us: float) -> None:
        for queue in self._queues:
            while queue.free_us < until_us:
                if not self._send_one(queue, until_us):
                    break

    def _send_one(self, queue: _LinkQueue, until_us: float = math.inf) -> bool:
        """The next message of the link, or the time until another one is ready."""
        queue.take_what_is_ready()
        place = self._pick(queue)
        if place is not None:
            starts_us = queue.free_us
            run = queue.send(place, self._messages[queue.ready[queue.cycle][place][2]].time_us)
            self._starts[run], self._arrives[run] = starts_us, queue.free_us
            return True
        if not queue.coming or queue.coming[0][0] >= until_us:
            return False
        queue.idle_until_next()
        return True

    def _pick(self, queue: _LinkQueue) -> int | None:
        """The place of the one that leaves; None: none is ready, or none should leave yet."""
        ready = queue.ready.get(queue.cycle, ())
        for place, (due_us, _, index) in enumerate(ready):
            if not self._patient or not self._makes_late(queue, index, due_us):
                return place
        return None

    def _makes_late(self, queue: _LinkQueue, index: int, due_us: float) -> bool:
        """Whether a more urgent message that comes meanwhile is late only because of this one."""
        done_us = queue.free_us + self._messages[index].time_us
        due_us += self._cycle_us * queue.cycle
        after_us, instead_us = done_us, queue.free_us
        for ready_us, cycle, (other_us, _, other) in sorted(queue.coming):
            if ready_us >= done_us:
                break
            other_due_us = other_us + self._cycle_us * cycle
            if other_due_us >= due_us:
                continue
            time_us = self._messages[other].time_us
            after_us = max(after_us, ready_us) + time_us
            instead_us = max(instead_us, ready_us) + time_us
            late = after_us > other_due_us + self._shift_us + _LATE_US
            if late and after_us > instead_us + _LATE_US:
                return True
        return False
