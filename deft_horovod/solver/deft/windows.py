"""Windows: the training loop of DeFT's scheme, played through until it repeats itself.

The forward stage and the backward stage of each step are knapsacks of link time (see `knapsack`).
In forward everything old may travel. In backward the old travels first, and then what becomes ready
in it. What does not travel keeps accumulating: the gradients of the next step are added, and all of
them travel together later. Nothing is reordered: inside a window the old leaves in the order in
which it became complete, the new as it becomes ready. When the state after a step is one that was
there before, what happened between the two is the plan.

A *cadence* says in advance in which steps the sums of each block end; the windows then only decide
when they travel.

What is known of the scheme and what is our reading: docs/internals/differences-from-the-paper.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from deft_horovod.base.period import LONGEST_PERIOD
from deft_horovod.plan import Stage
from deft_horovod.solver.assemble import Departure, Timing
from deft_horovod.solver.deft.knapsack import Knapsack, KnapsackItem, fill
from deft_horovod.solver.problem import Item, Problem

# Ticks of a step. Coarse, so that states repeat.
_STEP_TICKS: Final = 2_000
# A message longer than so many steps is exposed whatever its exact time.
_MOST_TICKS: Final = 50 * _STEP_TICKS
_STEPS: Final = 24  # in which the loop has to repeat itself
_CYCLES: Final = 4  # of a cadence, if those are more steps

_Sent = tuple[int, bool, int, int]  # step, whether in backward, bucket, link


@dataclass(frozen=True)
class Rhythm:
    """The sums of a block are `every` steps long; one of them ends in step `end_step`."""

    every: int
    end_step: int

    def ends(self, step: int) -> bool:
        return (step - self.end_step) % self.every == 0


@dataclass(frozen=True)
class Cadence:
    period: int
    rhythms: tuple[Rhythm, ...]  # of each block


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

    @property
    def steps(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class PeriodSchedule:
    """One period: when sums are complete and applied, and what leaves in which order."""

    period: int
    timings: tuple[Timing, ...]
    departures: tuple[Departure, ...]


# What remains to be sent after a step, counted from that step.
_State = tuple[tuple[int, int, int, int], ...]


class _TrainingLoop:
    def __init__(self, problem: Problem, cadence: Cadence | None, plain: bool) -> None:
        self._problem, self._cadence, self._plain = problem, cadence, plain
        self._max_delay = 1 if plain else problem.limits.max_delay
        self._rate = _STEP_TICKS / problem.step_us if problem.step_us > 0.0 else 0.0
        # The link goes on while the optimizer updates; the next forward window has begun by then.
        self._forward = self._window(problem.forward_us + problem.optimizer_us)
        self._backward = self._window(problem.backward_us)
        links = range(problem.links)
        self._ticks = [tuple(self._longest(item, link) for link in links) for item in problem.items]
        self._ready = [math.ceil(item.ready_us * self._rate) for item in problem.items]
        self._order = sorted(range(len(problem.items)), key=lambda b: (self._ready[b], b))
        self._open: list[_Sum] = []  # oldest first
        self.done: list[_Sum] = []

    def _window(self, time_us: float) -> int:
        return int(time_us * self._problem.margin * self._rate)

    def _longest(self, item: Item, link: int) -> int:
        """Of its buckets, which are alike."""
        time_us = max(times[link] for times in item.times_us)
        if time_us * self._rate >= _MOST_TICKS or not self._rate:
            return _MOST_TICKS
        return math.ceil(time_us * self._rate)

    def state(self, step: int) -> _State:
        return tuple((s.block, s.first - step, s.last - step, s.left) for s in self._open)

    def play(self, step: int) -> None:
        free = (0,) * self._problem.links
        self._send(step, False, self._may_go(), Knapsack(self._forward, free))
        used = self._send(step, True, self._may_go(), Knapsack(self._backward, free))
        self._collect(step)
        if self._plain or any(s.last < step for s in self._open):
            return  # or the new would overtake the old
        new = self._may_go()
        if self._cadence is not None:  # what needs more than one window first
            large = [s for s in new if self._is_large(s)]
            used = self._send(step, True, large, Knapsack(self._backward, used))
            new = [s for s in new if not self._is_large(s)]
        self._send(step, True, new, Knapsack(self._backward, used))

    def _may_go(self) -> list[_Sum]:
        return [s for s in self._open if self._cadence is None or self._is_closed(s)]

    def _is_closed(self, one: _Sum) -> bool:
        """It does not grow: it was begun, or is as long as it may be or has to be."""
        if one.is_begun or one.steps >= self._problem.limits.max_merge:
            return True
        return self._cadence is not None and self._cadence.rhythms[one.block].ends(one.last)

    def _is_large(self, one: _Sum) -> bool:
        """Larger than any window: it has to be spread over several."""
        return one.count * min(self._ticks[one.block]) > max(self._forward, self._backward)

    def _collect(self, step: int) -> None:
        """The gradients of the step join what has not left and may grow; in order of readiness."""
        growing = {s.block: s for s in self._open if not self._is_closed(s)}
        self._open = [s for s in self._open if self._is_closed(s)]
        for block in self._order:
            joined = growing.get(block)
            if joined is None:
                count = len(self._problem.items[block].times_us)
                joined = _Sum(block, step, step, count, count)
            joined.last = step
            self._open.append(joined)

    def _send(
        self, step: int, backward: bool, sums: Sequence[_Sum], window: Knapsack
    ) -> tuple[int, ...]:
        """Returns how long each link is busy then."""
        pieces = [self._piece(s, step, backward) for s in sums]
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

    def _piece(self, one: _Sum, step: int, backward: bool) -> KnapsackItem:
        is_new = one.last == step
        is_closed = self._is_closed(one)
        last_chance = backward and step >= one.last + self._max_delay
        spreads = self._is_large(one) and not last_chance
        return KnapsackItem(
            count=one.left,
            ticks=self._ticks[one.block],
            steps=one.steps,
            ready=self._ready[one.block] if is_new else 0,
            whole=not (is_closed or spreads),
            must=last_chance and is_closed and not is_new,
        )


def schedule(
    problem: Problem, cadence: Cadence | None = None, *, plain: bool = False
) -> PeriodSchedule | None:
    """None: it did not repeat itself in time. `plain`: everything travels in the step after its
    last gradient, so that a step depends on none before, and a cadence always repeats itself."""
    loop = _TrainingLoop(problem, cadence, plain)
    turn, steps = 1, _STEPS
    if cadence is not None:
        turn, steps = cadence.period, max(_STEPS, cadence.period * _CYCLES)
    seen: dict[_State, int] = {}
    for step in range(steps):
        loop.play(step)
        if (step + 1) % turn:
            continue
        state = loop.state(step)
        if state in seen:
            break
        seen[state] = step
    else:
        return None
    begin, period = seen[state] + 1, step - seen[state]
    if period > LONGEST_PERIOD:
        return None
    # What is complete in this stretch may leave after it.
    limits = problem.limits
    for later in range(step + 1, step + 2 + limits.max_delay + limits.max_merge):
        loop.play(later)
    return _cut(problem, loop.done, begin, period)


def _cut(problem: Problem, done: Sequence[_Sum], begin: int, period: int) -> PeriodSchedule:
    """The sums that are complete in this stretch, as a cycle."""
    spans: list[list[tuple[int, int, int]]] = [[] for _ in problem.items]
    departures = []
    for one in done:
        if not begin <= one.last < begin + period:
            continue
        delay = max(step for step, _, _, _ in one.sent) - one.last
        spans[one.block].append((one.first - begin, one.last - begin, delay))
        ready_us = problem.items[one.block].ready_us
        for step, backward, bucket, link in one.sent:
            stage: Stage = "backward" if backward else "forward"
            window = (step - one.last, stage)
            departure = Departure(one.block, bucket, one.last - begin, link, window)
            place = (step, backward, one.last, ready_us, one.block, bucket)
            departures.append((place, departure))
    departures.sort(key=lambda entry: entry[0])
    timings = tuple(Timing(tuple(sorted(of_block))) for of_block in spans)
    return PeriodSchedule(period, timings, tuple(departure for _, departure in departures))
