"""Traffic: when the messages of a plan leave and arrive.

The rules are those of the window executor. In plan order a link sends its list strictly in turn:
each message once its window is open, its generation complete, the messages of its generation before
it have arrived, and there is credit. Without plan order a message leaves as soon as the rest holds.
A link carries what has left one after another.

Nothing is asked twice and no clock ticks: a message's times follow from those before it. In plan
order they are worked out as soon as those are known; otherwise in the order of departure, and only
as far as somebody waits, since whatever becomes known later also leaves later.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from deft_horovod.base.parameter import WIRE_ITEM_BYTES
from deft_horovod.errors import PlanError, explain
from deft_horovod.plan import Link, Plan, Task


class MessageTimes(NamedTuple):
    """Of one message, in microseconds."""

    ready_us: float  # its generation was complete, or the message before it had arrived
    leaves_us: float  # it was handed to the link
    starts_us: float  # the link was free for it
    arrives_us: float


def window_of(task: Task) -> int:
    """Windows by number: the forward of step 0, its backward, the forward of step 1, ..."""
    return 2 * task.step + (task.stage == "backward")


@dataclass
class _Lane:
    """A link that sends in plan order: what is next, and what counts against its credit."""

    link: Link
    tasks: list[int]
    limited: bool = False
    position: int = 0
    cycle: int = 0
    last_us: float = 0.0
    flying_bytes: int = 0
    flying: deque[tuple[float, int]] = field(default_factory=deque)  # (arrives_us, bytes)

    def credit_us(self, leaves_us: float, size_bytes: int) -> float:
        """When there is credit: then or later."""
        messages, limit = self.link.credit_messages, self.link.credit_bytes
        flying = self.flying
        while flying:
            full = (messages and len(flying) >= messages) or (
                limit and self.flying_bytes + size_bytes > limit
            )
            if flying[0][0] > leaves_us and not full:
                break
            arrives_us, arrived_bytes = flying.popleft()
            self.flying_bytes -= arrived_bytes
            leaves_us = max(leaves_us, arrives_us)
        return leaves_us

    def advance(self, leaves_us: float, arrives_us: float, size_bytes: int) -> None:
        self.last_us = leaves_us
        if self.limited:
            self.flying.append((arrives_us, size_bytes))
            self.flying_bytes += size_bytes
        self.position += 1
        if self.position == len(self.tasks):
            self.position = 0
            self.cycle += 1


class Traffic:
    """The messages of all cycles. Events have to be told in the order of time."""

    def __init__(self, plan: Plan, task_us: Sequence[float]) -> None:
        self._task_us = task_us
        self._generations, self._tasks = len(plan.generations), len(plan.tasks)
        self._windows_a_cycle = 2 * plan.period
        self._window = [window_of(task) for task in plan.tasks]
        self._generation = [task.generation for task in plan.tasks]
        self._link = [task.link for task in plan.tasks]
        self._bytes = [_message_bytes(plan, task) for task in plan.tasks]
        self._chain: list[list[int]] = [[] for _ in plan.generations]
        on_link: list[list[int]] = [[] for _ in plan.links]
        for index, task in enumerate(plan.tasks):
            self._chain[task.generation].append(index)
            on_link[task.link].append(index)
        self._in_order = [link.plan_order for link in plan.links]
        self._lanes = [
            _Lane(link, tasks, limited=bool(link.credit_messages or link.credit_bytes))
            for link, tasks in zip(plan.links, on_link, strict=True)
            if link.plan_order and tasks
        ]
        self._free_us = [0.0] * len(plan.links)
        self._openings_us: list[float] = []
        # Not in plan order: what waits for its window, and what may leave (from when, who first).
        self._closed: dict[int, list[tuple[float, int, int]]] = {}
        self._offered: list[tuple[float, int, int, int]] = []
        self._offers = 0
        # Of each instance, that is cycle * generations + generation.
        self._ready_us: list[float | None] = []
        self._done: list[int] = []  # messages that have got their times
        # Of each message, that is cycle * tasks + task.
        self._times: list[MessageTimes | None] = []

    def open_window(self, time_us: float) -> None:
        """The next window opens. They open one after another, forward and backward in turn."""
        number = len(self._openings_us)
        self._openings_us.append(time_us)
        for ready_us, task, cycle in self._closed.pop(number, ()):
            self._offer(max(ready_us, time_us), task, cycle)
        self._run_lanes()

    def complete(self, generations: Sequence[tuple[float, int]], cycle: int) -> None:
        """All gradients of these are there from the given times on (ascending)."""
        missing = cycle + 1 - len(self._done) // max(1, self._generations)
        if missing > 0:
            self._ready_us += [None] * (missing * self._generations)
            self._done += [0] * (missing * self._generations)
            self._times += [None] * (missing * self._tasks)
        for ready_us, generation in generations:
            self._make_ready(generation, cycle, ready_us)
        self._run_lanes()

    def arrival_us(self, generation: int, cycle: int) -> float:
        """When the last message of the generation arrives."""
        instance = cycle * self._generations + generation
        chain = self._chain[generation]
        while self._done[instance] < len(chain):
            if not self._offered:
                raise PlanError(
                    explain(
                        f"generation {generation} of cycle {cycle} would never arrive",
                        observed=f"{self._done[instance]} of its {len(chain)} messages leave",
                        expected="all of them, before it is applied",
                        action="report a defect: the rules of plans should have refused this one",
                    )
                )
            leaves_us, _, task, of_cycle = heapq.heappop(self._offered)
            self._send(task, of_cycle, leaves_us)
            self._run_lanes()
        return self._of(chain[-1], cycle).arrives_us

    def times(self, cycle: int) -> Iterator[MessageTimes]:
        """Of all messages of a cycle whose generations have all arrived."""
        return (self._of(task, cycle) for task in range(self._tasks))

    def _of(self, task: int, cycle: int) -> MessageTimes:
        times = self._times[cycle * self._tasks + task]
        assert times is not None  # noqa: S101 (it was waited for)
        return times

    def _make_ready(self, generation: int, cycle: int, ready_us: float) -> None:
        instance = cycle * self._generations + generation
        self._ready_us[instance] = ready_us
        task = self._chain[generation][self._done[instance]]
        if self._in_order[self._link[task]]:
            return
        window = self._window[task] + cycle * self._windows_a_cycle
        if window < len(self._openings_us):
            self._offer(max(ready_us, self._openings_us[window]), task, cycle)
        else:
            self._closed.setdefault(window, []).append((ready_us, task, cycle))

    def _offer(self, leaves_us: float, task: int, cycle: int) -> None:
        heapq.heappush(self._offered, (leaves_us, self._offers, task, cycle))
        self._offers += 1

    def _run_lanes(self) -> None:
        """As far as times are known. A message can be what one of another lane waits for."""
        moved = True
        while moved:
            moved = False
            for lane in self._lanes:
                moved = self._run(lane) or moved
            moved = moved and len(self._lanes) > 1

    def _run(self, lane: _Lane) -> bool:
        openings_us, ready_us, done = self._openings_us, self._ready_us, self._done
        moved = False
        while True:
            task, cycle = lane.tasks[lane.position], lane.cycle
            generation = self._generation[task]
            instance = cycle * self._generations + generation
            window = self._window[task] + cycle * self._windows_a_cycle
            if window >= len(openings_us) or instance >= len(done):
                return moved
            since_us = ready_us[instance]
            if since_us is None or self._chain[generation][done[instance]] != task:
                return moved
            leaves_us = max(lane.last_us, openings_us[window], since_us)
            size_bytes = self._bytes[task]
            if lane.limited:
                leaves_us = lane.credit_us(leaves_us, size_bytes)
            lane.advance(leaves_us, self._send(task, cycle, leaves_us), size_bytes)
            moved = True

    def _send(self, task: int, cycle: int, leaves_us: float) -> float:
        """Puts a message that may leave on its link; returns when it arrives."""
        link, generation = self._link[task], self._generation[task]
        instance = cycle * self._generations + generation
        ready_us = self._ready_us[instance]
        assert ready_us is not None  # noqa: S101 (or it could not leave)
        starts_us = max(leaves_us, self._free_us[link])
        arrives_us = self._free_us[link] = starts_us + self._task_us[task]
        times = MessageTimes(ready_us, leaves_us, starts_us, arrives_us)
        self._times[cycle * self._tasks + task] = times
        self._done[instance] += 1
        if self._done[instance] < len(self._chain[generation]):
            self._make_ready(generation, cycle, arrives_us)
        else:
            self._ready_us[instance] = None
        return arrives_us


def _message_bytes(plan: Plan, task: Task) -> int:
    bucket = plan.buckets[plan.generations[task.generation].bucket]
    return (bucket.end - bucket.begin) * WIRE_ITEM_BYTES[plan.arenas[bucket.arena].wire]
