"""Cadence: how often each block travels where the windows alone find no rhythm.

Two lengths of sums, a shorter and a longer one: as many blocks as possible (a knapsack) take the
shorter, so that updates are no rarer than the links make necessary. Which steps the sums of a block
end in is then balanced over the period, the largest block first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from deft_horovod.base.period import LONGEST_PERIOD
from deft_horovod.solver.deft.knapsack import Knapsack, KnapsackItem, fill
from deft_horovod.solver.deft.windows import Cadence, Rhythm
from deft_horovod.solver.problem import Item, Problem

# Of the windows' time: less where a balanced step still asks for more than it has.
_SHARES: Final = (1.0, 0.93)
_TICKS: Final = 20_000
_CANDIDATES: Final = 3  # of each share


def cadences(problem: Problem) -> Iterator[Cadence]:
    """The one with the most updates first."""
    seen = set()
    times_us = [_shared_us(item, problem.links) for item in problem.items]
    for share in _SHARES:
        capacity_us = share * problem.margin * problem.step_us
        found = [
            _lengths(times_us, capacity_us, *pair)
            for pair in _pairs(problem, times_us, capacity_us)
        ]
        found.sort(key=lambda lengths: _load(times_us, [1.0 / k for k in lengths]), reverse=True)
        for lengths in found[:_CANDIDATES]:
            if tuple(lengths) not in seen:
                seen.add(tuple(lengths))
                yield _balance(problem, times_us, lengths)


def needs_merging(problem: Problem) -> bool:
    """Whether the links cannot carry every gradient of every step."""
    load_us = sum(_shared_us(item, problem.links) for item in problem.items)
    return load_us > problem.margin * problem.step_us


def _shared_us(item: Item, links: int) -> float:
    """What a block takes if all links share it."""
    rate = 0.0
    for link in range(links):
        time_us = sum(times[link] for times in item.times_us)
        if time_us <= 0.0:
            return 0.0
        rate += 1.0 / time_us
    return 1.0 / rate


def _load(times_us: Sequence[float], rates: Sequence[float]) -> float:
    return sum(time_us * rate for time_us, rate in zip(times_us, rates, strict=True))


def _pairs(
    problem: Problem, times_us: Sequence[float], capacity_us: float
) -> list[tuple[int, int]]:
    """Lengths with which everything fits; only the longest if nothing does."""
    longest = min(problem.limits.max_merge, LONGEST_PERIOD)
    total_us = sum(times_us)
    found = [
        (short, long)
        for long in range(1, longest + 1)
        for short in range(1, long + 1)
        if total_us / long <= capacity_us and math.lcm(short, long) <= LONGEST_PERIOD
    ]
    return found or [(longest, longest)]


def _lengths(times_us: Sequence[float], capacity_us: float, short: int, long: int) -> list[int]:
    """As many of the short ones as fit."""
    slack_us = capacity_us - sum(times_us) / long
    gain = 1.0 / short - 1.0 / long
    if gain == 0.0 or slack_us <= 0.0:
        return [long] * len(times_us)
    rate = _TICKS / slack_us
    pieces = [
        KnapsackItem(1, (min(2 * _TICKS, math.ceil(time_us * gain * rate)),))
        for time_us in times_us
    ]
    chosen = fill(pieces, Knapsack(_TICKS, (0,)))
    return [short if count else long for (count,) in chosen]


def _balance(problem: Problem, times_us: Sequence[float], lengths: Sequence[int]) -> Cadence:
    """A sum that ends in a step travels in the next ones, as far as they last and the delay allows;
    what is left, in the backward in which it ends."""
    period = math.lcm(*lengths)
    room_us = problem.margin * problem.step_us
    load_us = [0.0] * period
    rhythms = [Rhythm(1, 0)] * len(lengths)
    for block in sorted(range(len(lengths)), key=lambda b: (-times_us[b], b)):
        every = lengths[block]
        found = []
        for end_step in range(every):
            asked = _spread(problem, times_us[block], room_us)
            after_us = list(load_us)
            for last in range(end_step, period, every):
                for offset, time_us in asked:
                    after_us[(last + offset) % period] += time_us
            over_us = sum(max(0.0, load - room_us) for load in after_us)
            found.append((over_us, max(after_us), end_step, after_us))
        _, _, end_step, load_us = min(found)
        rhythms[block] = Rhythm(every, end_step)
    return Cadence(period, tuple(rhythms))


def _spread(problem: Problem, time_us: float, room_us: float) -> list[tuple[int, float]]:
    """By steps after the one in which a sum ends, what it takes there."""
    asked = []
    for offset in range(1, problem.limits.max_delay + 1):
        here_us = min(time_us, room_us)
        asked.append((offset, here_us))
        time_us -= here_us
    return [*asked, (0, time_us)]
