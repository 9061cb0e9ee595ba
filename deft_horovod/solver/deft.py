"""DeFT's scheme, as far as it is known, and our reading where it is not
(docs/differences-from-the-paper.md).

The training loop is played through window by window: the forward stage and the backward stage of
each step are knapsacks of link time (see `knapsack`). In forward everything old may travel. In
backward the old travels first, and then what becomes ready in it. What does not travel keeps
accumulating: the gradients of the next step are added, and all of them travel together later.
Nothing is reordered: inside a window the old leaves in the order in which it became complete, the
new as it becomes ready. When the state after a step is one that was there before, what happened
between the two is the plan.

The windows say what travels when at the latest, and hence in which order. They hold nothing back: a
message whose turn has come leaves, so that the link does not idle for the rest of a window into
which no message fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from deft_horovod.solver.assemble import Departure, Timing
from deft_horovod.solver.knapsack import Piece, Window, fill
from deft_horovod.solver.problem import LONGEST_PERIOD, Item, Problem

# Ticks of a step. Coarse, so that states repeat.
_STEP_TICKS: Final = 2_000
_MOST_STEPS: Final = 100  # that all messages take; if more, a tick is a larger part of a step
_STEPS: Final = 3 * LONGEST_PERIOD


_Sent = tuple[int, bool, int, int]  # step, whether in backward, bucket, link


@dataclass
class _Sum:
    """Gradients of a block that travel together."""

    block: int
    first: int
    last: int
    left: int  # buckets that have not left
    count: int
    sent: list[_Sent] = field(default_factory=list)

    @property
    def is_begun(self) -> bool:
        return self.left < self.count


@dataclass(frozen=True)
class Schedule:
    """One period: when each block's sums are complete and applied, and what leaves in which
    order."""

    period: int
    timings: tuple[Timing, ...]
    departures: tuple[Departure, ...]


# What remains to be sent after a step, counted from that step.
_State = tuple[tuple[int, int, int, int], ...]


class _Loop:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        travels_us = sum(max(times) for item in problem.items for times in item.times_us)
        scale_us = max(problem.step_us, travels_us / _MOST_STEPS)
        self._rate = _STEP_TICKS / scale_us if scale_us > 0.0 else 1.0
        # The link goes on while the optimizer updates; the next forward window has begun by then.
        self._forward = self._window(problem.forward_us + problem.optimizer_us)
        self._backward = self._window(problem.backward_us)
        self._open: list[_Sum] = []  # oldest first
        self.done: list[_Sum] = []

    def _window(self, time_us: float) -> int:
        return int(time_us * self._problem.margin * self._rate)

    def state(self, step: int) -> _State:
        return tuple((s.block, s.first - step, s.last - step, s.left) for s in self._open)

    def play(self, step: int) -> None:
        free = (0,) * self._problem.links
        self._send(step, False, self._open, Window(self._forward, free))
        used = self._send(step, True, self._open, Window(self._backward, free))
        new = self._collect(step)
        if not any(s.last < step for s in self._open):  # or the new would overtake the old
            self._send(step, True, new, Window(self._backward, used))

    def _collect(self, step: int) -> list[_Sum]:
        """The gradients of the step join what has not left and may grow; in order of readiness."""
        items, longest = self._problem.items, self._problem.limits.max_merge
        growing = {
            s.block: s for s in self._open if not s.is_begun and s.last - s.first + 1 < longest
        }
        new = []
        for block in sorted(range(len(items)), key=lambda b: (items[b].ready_us, b)):
            joined = growing.get(block)
            if joined is None:
                count = len(items[block].times_us)
                joined = _Sum(block, step, step, count, count)
            else:
                self._open.remove(joined)
                joined.last = step
            new.append(joined)
        self._open += new
        return new

    def _send(
        self, step: int, backward: bool, sums: Sequence[_Sum], window: Window
    ) -> tuple[int, ...]:
        """Returns how long each link is busy then."""
        sums = list(sums)
        pieces = [self._piece(s, step, backward, window) for s in sums]
        used = list(window.used)
        for one, piece, counts in zip(sums, pieces, fill(pieces, window), strict=True):
            for link, count in enumerate(counts):
                for _ in range(count):
                    one.sent.append((step, backward, one.count - one.left, link))
                    one.left -= 1
                    used[link] = max(used[link], piece.ready) + piece.ticks[link]
            if not one.left:
                self._open.remove(one)
                self.done.append(one)
        return tuple(used)

    def _piece(self, one: _Sum, step: int, backward: bool, window: Window) -> Piece:
        item = self._problem.items[one.block]
        ticks = tuple(self._ticks(item, link) for link in range(self._problem.links))
        limits = self._problem.limits
        steps = one.last - one.first + 1
        is_new = one.last == step
        ready = math.ceil(item.ready_us * self._rate) if is_new else 0
        windows_later = one.last + limits.max_delay - step
        is_last_chance = backward and windows_later <= 0
        # It does not grow: it was begun, or is as long as it may be.
        is_closed = one.is_begun or steps >= limits.max_merge
        # What is larger than this window is spread over those that follow, if they can hold it.
        room = window.ticks - max(ready, *window.used) + (0 if backward else self._backward)
        room += windows_later * (self._forward + self._backward)
        time = one.count * min(ticks)
        return Piece(
            count=one.left if is_closed or time <= room else 0,
            ticks=ticks,
            steps=steps,
            ready=ready,
            whole=not is_closed and (is_last_chance or time <= self._backward),
            must=is_last_chance and is_closed and not is_new,
        )

    def _ticks(self, item: Item, link: int) -> int:
        return math.ceil(max(times[link] for times in item.times_us) * self._rate)


def schedule(problem: Problem) -> Schedule:
    loop = _Loop(problem)
    seen: dict[_State, int] = {}
    begin, period = LONGEST_PERIOD, LONGEST_PERIOD  # if no state ever comes back
    step = 0
    for step in range(_STEPS):
        loop.play(step)
        state = loop.state(step)
        if state in seen and step - seen[state] <= LONGEST_PERIOD:
            begin, period = seen[state] + 1, step - seen[state]
            break
        seen[state] = step
    # What is complete in this stretch may leave, or grow, after it.
    limits = problem.limits
    for later in range(step + 1, step + 2 + limits.max_delay + limits.max_merge):
        loop.play(later)
    return _cut(problem, loop.done, begin, period)


def _cut(problem: Problem, done: Sequence[_Sum], begin: int, period: int) -> Schedule:
    """The sums that are complete in this stretch, as a cycle.

    Each carries the gradients since the one before it, in the cycle: so nothing is lost or doubled
    even if the stretch is not exactly a cycle. Where that would make a sum at the seam longer than
    allowed, another one is sent at the end of the stretch.
    """
    by_block: list[list[_Sum]] = [[] for _ in problem.items]
    for one in done:
        if begin <= one.last < begin + period:
            by_block[one.block].append(one)
    end = begin + period - 1
    for block, sums in enumerate(by_block):
        sums.sort(key=lambda s: s.last)
        if sums[0].last + period - sums[-1].last > problem.limits.max_merge:
            count = len(problem.items[block].times_us)
            sent = [(end + 1, True, bucket, 0) for bucket in range(count)]
            sums.append(_Sum(block, end, end, 0, count, sent))
    timings = []
    departures = []
    for block, sums in enumerate(by_block):
        spans = []
        before = sums[-1].last - period
        for one in sums:
            delay = max(step for step, _, _, _ in one.sent) - one.last
            spans.append((before + 1 - begin, one.last - begin, delay))
            before = one.last
            ready_us = problem.items[block].ready_us
            departures += [
                (
                    (step, backward, one.last, ready_us, block, bucket),
                    Departure(block, bucket, one.last - begin, link),
                )
                for step, backward, bucket, link in one.sent
            ]
        timings.append(Timing(tuple(spans)))
    departures.sort(key=lambda entry: entry[0])
    return Schedule(period, tuple(timings), tuple(departure for _, departure in departures))
