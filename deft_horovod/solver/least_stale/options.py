"""Options: the choices that each item has, with what each asks of the links and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from deft_horovod.base.wire_format import EXACT
from deft_horovod.solver.least_stale.link_time import Array, Grid
from deft_horovod.solver.problem import Choice, Item, Problem

# More options than that are thinned out: end steps first, then long delays, then gates of sums.
_MOST: Final = 12_000
_FEWEST_OF_AN_ITEM: Final = 8
_SHARES: Final = 4  # ways to split an item of many buckets between two links

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Options:
    """Side by side for all items; those of one item are neighbours."""

    grid: Grid
    choices: tuple[Choice, ...]
    item: Ints
    first: Ints  # [item]: its first option; one more at the end
    cells: Ints  # [option, generation]: filled up with the cell that lies in no interval
    load: Array  # [option, link]: ticks of each generation
    harm: Array  # [option], weighted
    sends: Array  # [option]: messages a period
    gated: NDArray[np.bool_]

    def of(self, item: int) -> range:
        return range(int(self.first[item]), int(self.first[item + 1]))

    def demand(self, chosen: Sequence[int] | Ints) -> Array:
        """[link, row]: what these options, one of each item, ask of each interval."""
        picked = np.asarray(chosen, dtype=np.int64)
        asked = np.zeros((self.grid.cells + 1, self.load.shape[1]))
        cells = self.cells[picked]
        for generation in range(cells.shape[1]):
            np.add.at(asked, cells[:, generation], self.load[picked])
        demand: Array = asked.T @ self.grid.demand
        return demand

    def rows(self, options: Ints | slice) -> Array:
        """[option, row]: how many generations of each option lie in each interval."""
        cells = self.cells[options]
        inside = self.grid.demand[cells[:, 0]]
        for generation in range(1, cells.shape[1]):
            inside += self.grid.demand[cells[:, generation]]
        return inside


def make_options(grid: Grid) -> Options:
    problem, period = grid.problem, grid.period
    budget = max(_FEWEST_OF_AN_ITEM, _MOST // max(1, len(problem.items)))
    splits = [_splits(item, problem.links) for item in problem.items]
    widest = max((len(ways) for ways in splits), default=1)
    classes = _classes(problem, period, max(1, budget // widest))
    choices: list[Choice] = []
    owner: list[int] = []
    cells: list[list[int]] = []
    load: list[list[int]] = []
    for index, (item, ways) in enumerate(zip(problem.items, splits, strict=True)):
        mine = [c for c in classes if item.need_us is not None or not c.gated]
        mine = [c for c in mine if item.may_be_late or not c.staleness]
        # Staleness makes rounding worse, so no block has both.
        fresh = [c for c in mine if not c.staleness]
        mine += [replace(c, format=one) for one in item.formats for c in fresh]
        places = [
            [grid.cell(index, step, c.delay, c.gated) for step in c.last_steps(period)]
            for c in mine
        ]
        for links in ways:
            ticks = {
                one: [grid.ticks(item.load_us(links, link, one)) for link in range(problem.links)]
                for one in (EXACT, *item.formats)
            }
            choices += [replace(choice, links=links) for choice in mine]
            cells += [at + [grid.cells] * (period - len(at)) for at in places]
            load += [ticks[choice.format] for choice in mine]
            owner += [index] * len(mine)
    owners = np.array(owner, dtype=np.int64)
    weight = np.array([item.weight for item in problem.items])
    harm = np.array([choice.harm for choice in choices])
    sends = [len(choice.links) * len(choice.last_steps(period)) for choice in choices]
    return Options(
        grid=grid,
        choices=tuple(choices),
        item=owners,
        first=np.searchsorted(owners, np.arange(len(problem.items) + 1)).astype(np.int64),
        cells=np.array(cells, dtype=np.int64).reshape(len(choices), period),
        load=np.array(load, dtype=np.float64).reshape(len(choices), problem.links),
        harm=harm * weight[owners] if choices else harm,
        sends=np.array(sends, dtype=np.float64),
        gated=np.array([choice.gated for choice in choices], dtype=np.bool_),
    )


def _classes(problem: Problem, period: int, budget: int) -> list[Choice]:
    """Whatever the limits and the order of messages allow, thinned out if it is too much."""
    for end_steps, delays, gated_sums in (
        (period, period, True),
        (8, 2, True),
        (4, 2, False),
        (4, 1, False),
        (2, 1, False),
        (1, 1, False),
    ):
        found = list(_some_classes(problem, period, end_steps, delays))
        found = [c for c in found if gated_sums or not (c.gated and c.merged > 1)]
        if len(found) <= budget:
            break
    return found


def _some_classes(problem: Problem, period: int, end_steps: int, delays: int) -> Iterator[Choice]:
    """All messages of a cycle leave before those of the next one, since a link's list is sent in
    turn, cycle by cycle. So what is complete at the end of a cycle has to be out of the way when
    the next one's messages are due: nothing is applied later than in the next cycle's first step.
    (A longer delay of what is sent in every step would gain nothing anyway: it adds no link time.)
    """
    limits = problem.limits
    for merged in (k for k in range(1, limits.max_merge + 1) if period % k == 0):
        for end_step in range(0, merged, -(-merged // end_steps)):
            yield Choice(merged, end_step)
            yield Choice(merged, end_step, gated=True)
            longest = min(limits.max_delay, merged - end_step)
            if longest:
                yield from (Choice(merged, end_step, d) for d in _some_delays(longest, delays))


def _some_delays(longest: int, count: int) -> list[int]:
    """1, the longest, and some between."""
    every = -(-longest // count)
    return sorted({1, *range(longest, 0, -every)})


def _splits(item: Item, links: int) -> list[tuple[int, ...]]:
    """Ways to spread the buckets: all on one link, or the first ones on one and the rest on
    another.

    Buckets of an item are alike, so only the number on each link counts.
    """
    buckets = len(item.times_us)
    ways = [(link,) * buckets for link in range(links)]
    for one in range(links):
        for other in range(one + 1, links):
            parts = min(buckets, _SHARES)
            counts = {max(1, buckets * part // parts) for part in range(1, parts)}
            best = _balanced(item, one, other)
            if 0 < best < buckets:
                counts.add(best)
            ways += [(one,) * count + (other,) * (buckets - count) for count in sorted(counts)]
    on_all = _on_all(item, links)
    return ways if on_all in ways else [*ways, on_all]


def _balanced(item: Item, one: int, other: int) -> int:
    """How many buckets on the first link, so that both take the same time."""
    times = item.times_us[0]
    return round(len(item.times_us) * times[other] / max(times[one] + times[other], 1e-12))


def _on_all(item: Item, links: int) -> tuple[int, ...]:
    """Each bucket to the link that would be done with it first."""
    busy_us = [0.0] * links
    ways = []
    for times in item.times_us:
        link = min(range(links), key=lambda on: (busy_us[on] + times[on], on))
        busy_us[link] += times[link]
        ways.append(link)
    return tuple(sorted(ways))
