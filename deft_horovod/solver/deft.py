"""DeFT's scheme, as far as it is known, and our reading where it is not
(docs/differences-from-the-paper.md).

The training loop is played through window by window: the forward stage and the backward stage of each
step are knapsacks of link time (see `knapsack`). In forward everything old may travel. In backward
the old travels first, and then what becomes ready in it. What does not travel keeps accumulating: the
gradients of the next step are added, and all of them travel together later. Nothing is reordered:
inside a window the old leaves in the order in which it became complete, the new as it becomes ready.
When the state after a step is one that was there before, what happened between the two is the plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from deft_horovod.plan import Stage
from deft_horovod.solver.assemble import Departure, Timing
from deft_horovod.solver.knapsack import Piece, Window, fill
from deft_horovod.solver.problem import Item, Problem

# Ticks of a step. Coarse, so that states repeat.
_STEP_TICKS: Final = 2_000
_LONGEST_PERIOD: Final = 16
_STEPS: Final = 4 * _LONGEST_PERIOD


@dataclass
class _Sum:
    """Gradients of a block that travel together."""

    block: int
    first: int
    last: int
    left: int  # buckets that have not left
    count: int
    sent: list[tuple[int, Stage, int, int]] = field(default_factory=list)  # step, stage, bucket, link

    @property
    def is_begun(self) -> bool:
        return self.left < self.count


@dataclass(frozen=True)
class Schedule:
    """One period: when each block's sums are complete and applied, and what leaves in which order."""

    period: int
    timings: tuple[Timing, ...]
    departures: tuple[Departure, ...]


# What remains to be sent after a step, counted from that step.
_State = tuple[tuple[int, int, int, int], ...]


class _Loop:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        scale_us = problem.step_us or 1.0
        self._rate = _STEP_TICKS / scale_us
        # The link goes on while the optimizer updates; the next forward window has begun by then.
        self._forward = self._window(problem.forward_us + problem.optimizer_us)
        self._backward = self._window(problem.backward_us)
        self._open: list[_Sum] = []  # oldest first
        self.done: list[_Sum] = []
        self._order: dict[tuple[int, int], int] = {}

    def _window(self, time_us: float) -> int:
        return int(time_us * self._problem.margin * self._rate)

    def state(self, step: int) -> _State:
        return tuple((s.block, s.first - step, s.last - step, s.left) for s in self._open)

    def play(self, step: int) -> None:
        free = (0,) * self._problem.links
        self._send(step, "forward", self._open, Window(self._forward, free))
        used = self._send(step, "backward", self._open, Window(self._backward, free))
        new = self._collect(step)
        if not any(s.last < step for s in self._open):  # or the new would overtake the old
            self._send(step, "backward", new, Window(self._backward, used))

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
        self, step: int, stage: Stage, sums: Sequence[_Sum], window: Window
    ) -> tuple[int, ...]:
        """Returns how long each link is busy then."""
        sums = list(sums)
        pieces = [self._piece(s, step, stage) for s in sums]
        used = list(window.used)
        for one, piece, counts in zip(sums, pieces, fill(pieces, window), strict=True):
            for link, count in enumerate(counts):
                for _ in range(count):
                    one.sent.append((step, stage, one.count - one.left, link))
                    one.left -= 1
                    used[link] = max(used[link], piece.ready) + piece.ticks[link]
            if not one.left:
                self._open.remove(one)
                self.done.append(one)
        return tuple(used)

    def _piece(self, one: _Sum, step: int, stage: Stage) -> Piece:
        item = self._problem.items[one.block]
        ticks = tuple(self._ticks(item, link) for link in range(self._problem.links))
        limits = self._problem.limits
        is_new = one.last == step
        is_full = one.last - one.first + 1 >= limits.max_merge
        last_chance = step >= one.last + limits.max_delay and stage == "backward"
        # What is larger than any window has to be spread over several.
        is_large = one.count * min(ticks) > self._backward
        return Piece(
            count=one.left,
            ticks=ticks,
            ready=math.ceil(item.ready_us * self._rate) if is_new else 0,
            whole=not (one.is_begun or is_full or is_large),
            must=last_chance and not is_new and (is_full or one.is_begun),
        )

    def _ticks(self, item: Item, link: int) -> int:
        return math.ceil(max(times[link] for times in item.times_us) * self._rate)


def schedule(problem: Problem) -> Schedule:
    loop = _Loop(problem)
    seen: dict[_State, int] = {}
    begin, period = _LONGEST_PERIOD, _LONGEST_PERIOD  # if no state ever comes back
    for step in range(_STEPS):
        loop.play(step)
        state = loop.state(step)
        if state in seen and step - seen[state] <= _LONGEST_PERIOD:
            begin, period = seen[state] + 1, step - seen[state]
            break
        seen[state] = step
    # What is complete in this stretch may leave, or grow, after it.
    limits = problem.limits
    for later in range(step + 1, step + 2 + limits.max_delay + limits.max_merge):
        loop.play(later)
    return _cut(problem, loop.done, begin, period)


def _cut(problem: Problem, done: Sequence[_Sum], begin: int, period: int) -> Schedule:
    """The sums that are complete in this stretch, as a cycle. Each carries the gradients since the
    one before it, in the cycle: so nothing is lost or doubled even where the stretch is not exactly
    one, and sums at its seam are then shorter or longer than they were when it was played."""
    by_block: list[list[_Sum]] = [[] for _ in problem.items]
    inside = [s for s in done if begin <= s.last < begin + period]
    for one in inside:
        by_block[one.block].append(one)
    timings = []
    for sums in by_block:
        sums.sort(key=lambda s: s.last)
        lasts = [s.last - begin for s in sums]
        firsts = [lasts[-1] - period + 1, *(last + 1 for last in lasts[:-1])]
        delays = [max(step for step, _, _, _ in s.sent) - s.last for s in sums]
        timings.append(Timing(tuple(zip(firsts, lasts, delays, strict=True))))
    departures = []
    for one in inside:
        for step, stage, bucket, link in one.sent:
            window: tuple[int, Stage] = (step - one.last, stage)
            departures.append(
                (
                    (step, stage == "backward", one.last, problem.items[one.block].ready_us),
                    Departure(one.block, bucket, one.last - begin, link, window),
                )
            )
    departures.sort(key=lambda entry: (*entry[0], entry[1].block, entry[1].bucket))
    return Schedule(period, tuple(timings), tuple(departure for _, departure in departures))
