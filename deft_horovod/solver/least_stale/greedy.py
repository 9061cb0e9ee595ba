"""Greedy: good choices in a short time. A start for the exact search, and what is used if that
finds nothing better in its time.

From some starts (everything synchronous; the same in the fewest bytes; everything as patient as
allowed and merged by the same number of steps: as few as the links can carry, and one less):

1. While some interval asks for more than there is: of all single changes that relieve the worst one
   and the whole, the one with the least harm for what it relieves. Where none is left, compute
   has to stand still.
2. From the stalest item on: the freshest option that does not break what was reached. Sums become
   shorter by one stage at a time, since a long sum gains most for the link time that it costs.

The best end counts: least exposed, then freshest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from deft_horovod.base.wire_format import EXACT
from deft_horovod.solver.least_stale.link_time import Array, Grid
from deft_horovod.solver.least_stale.options import Ints, Options
from deft_horovod.solver.problem import Choice

# How many of the most promising changes are looked at in full, and how many at once.
_LOOKED_AT = 96
_AT_ONCE = 8
# Relieving less than a millionth of a step is no progress.
_PROGRESS = 1.0
# Intervals that nothing relieves: after so many the rest is taken to be like them.
_HOPELESS = 8


@dataclass(frozen=True)
class Solution:
    options: Options
    chosen: Ints  # [item]: its option
    stalls: Array  # ticks
    # optimal (nothing better exists, as far as the demand of intervals goes), feasible or greedy
    status: str = "greedy"

    @property
    def exposed(self) -> float:
        """Ticks of a period."""
        return float(self.stalls.sum())

    @property
    def exposed_us(self) -> float:
        """Of a step."""
        return self.options.grid.exposed_us(self.stalls)

    @property
    def harm(self) -> float:
        return float(self.options.harm[self.chosen].sum())

    def key(self) -> tuple[float, float, float, float]:
        """The smallest is the best."""
        options = self.options
        return (
            self.exposed,
            self.harm,
            float(options.gated[self.chosen].sum()),
            float(options.sends[self.chosen].sum()),
        )


def choose_greedily(options: Options) -> Solution:
    if not len(options.choices):
        stalls = np.zeros(options.grid.stalls.shape[1])
        return Solution(options, np.zeros(0, dtype=np.int64), stalls, "optimal")
    best: Solution | None = None
    for chosen in _starts(options):
        _relieve(options, chosen)
        stalls = stalls_for(options.grid, options.demand(chosen))
        for _ in _sums(options):
            _freshen(options, chosen, stalls)
        found = Solution(options, chosen, stalls)
        if best is None or found.key() < best.key():
            best = found
    assert best is not None  # noqa: S101 (there is at least one start)
    return best


def stalls_for(grid: Grid, asked: Array) -> Array:
    """How long compute stands still where, so that every interval has what is asked of it.

    Time is added as late as an interval allows, so that those that begin later profit too; what
    turns out to be more than needed is taken back.
    """
    stalls = np.zeros(grid.stalls.shape[1])
    missing = (asked - grid.capacity).max(axis=0)
    short = np.flatnonzero(missing > 0.0)
    for row in short:
        lacking = missing[row] - grid.stalls[row] @ stalls
        if lacking > 0.0:
            stalls[grid.stall_at_end[row]] += np.ceil(lacking)
    for stall in np.argsort(-stalls, kind="stable"):
        served = grid.stalls @ stalls - missing
        touched = grid.stalls[:, stall] > 0.0
        spare = np.floor((served[touched] / grid.stalls[touched, stall]).min(initial=np.inf))
        if stalls[stall] > 0.0 and spare > 0.0:
            stalls[stall] -= min(stalls[stall], spare)
    return stalls


def _starts(options: Options) -> Iterator[Ints]:
    yield _start(options, 0)
    if any(choice.format != EXACT for choice in options.choices):
        yield _start(options, 1, fresh=True)
    before: Ints | None = None
    for merged in _sums(options):
        chosen = _start(options, merged)
        excess = options.demand(chosen) - options.grid.capacity
        if (excess[:, -1] <= 0.0).all():  # the links carry what is asked in the whole period
            if before is not None:
                yield before
            yield chosen
            return
        before = chosen
    assert before is not None  # noqa: S101 (there is at least one option)
    yield before


def _sums(options: Options) -> list[int]:
    """By how many steps there is something to merge."""
    return sorted({choice.merged for choice in options.choices})


def _start(options: Options, merged: int, *, fresh: bool = False) -> Ints:
    """One option of each item: all sums of as many steps, as late as may be (`fresh`: in time), on
    the links, in the steps and in the format that make the least to do. 0: nothing merged, late,
    gated or encoded."""
    steps = np.zeros((len(options.choices), options.grid.period))
    for option, choice in enumerate(options.choices):
        steps[option, list(choice.last_steps(options.grid.period))] = 1.0
    busy = np.zeros((options.load.shape[1], options.grid.period))
    chosen = np.zeros(len(options.first) - 1, dtype=np.int64)
    eligible = _eligible(options, merged, fresh=fresh)
    firsts = np.searchsorted(options.item[eligible], np.arange(len(options.first)))
    heavy = -options.load[options.first[:-1]].max(axis=1)
    for item in np.argsort(heavy, kind="stable"):
        mine = eligible[firsts[item] : firsts[item + 1]]
        then = busy + options.load[mine][:, :, None] * steps[mine][:, None, :]
        best = np.lexsort((mine, then.max(axis=(1, 2)), then.sum(axis=2).max(axis=1)))[0]
        chosen[item], busy = mine[best], then[best]
    return chosen


def _eligible(options: Options, merged: int, *, fresh: bool) -> Ints:
    """Those of which one of each item begins, see `_start`."""
    begins = options.first[:-1]
    plain = np.array([_is_start(choice, 0) for choice in options.choices])
    wanted = np.array(
        [_is_start(c, merged) and not (fresh and c.staleness) for c in options.choices]
    )
    some = np.logical_or.reduceat(wanted, begins)[options.item]
    late = np.array([2 * choice.delay + choice.gated for choice in options.choices])
    late = np.where(np.where(some, wanted, plain), late, -1)
    latest = np.maximum.reduceat(late, begins)[options.item]
    return np.flatnonzero((late == latest) & (late >= 0))


def _is_start(choice: Choice, merged: int) -> bool:
    if not merged:
        return not choice.harm and not choice.gated
    return choice.merged == merged and choice.delay <= 1


class _Standing:
    """The options that are chosen, and what any other one of the same item would cost more."""

    def __init__(self, options: Options, chosen: Ints) -> None:
        self.options = options
        self.chosen = chosen
        self.now = chosen[options.item]  # [option]: the chosen one of its item
        self.price = options.harm - options.harm[self.now]

    def change_to(self, option: int) -> None:
        item = self.options.item[option]
        mine = slice(self.options.first[item], self.options.first[item + 1])
        self.chosen[item] = self.now[mine] = option
        self.price[mine] = self.options.harm[mine] - self.options.harm[option]


def _relieve(options: Options, chosen: Ints) -> None:
    """Changes `chosen` until no interval is overcharged, or nothing relieves one that is."""
    excess = options.demand(chosen) - options.grid.capacity
    standing = _Standing(options, chosen)
    given_up = np.zeros(excess.shape, dtype=bool)
    while given_up.sum() < _HOPELESS:
        worst = np.where(given_up, -np.inf, excess)
        link, row = np.unravel_index(int(np.argmax(worst)), worst.shape)
        if worst[link, row] < _PROGRESS:
            return
        change = _best_change(standing, excess, int(link), int(row))
        if change is None:
            given_up[link, row] = True
            continue
        option, excess = change
        standing.change_to(option)


def _best_change(
    standing: _Standing, excess: Array, link: int, row: int
) -> tuple[int, Array] | None:
    """The option to switch to, and the excess then."""
    options, now = standing.options, standing.now
    inside = options.grid.demand[:, row]
    asks = inside[options.cells].sum(axis=1) * options.load[:, link]
    relief = np.minimum(asks[now] - asks, excess[link, row])
    useful = np.flatnonzero(relief >= _PROGRESS)
    if not len(useful):
        return None
    rate = standing.price[useful] / relief[useful]
    if len(useful) > _LOOKED_AT:  # only these have to be in order
        near = rate <= np.partition(rate, _LOOKED_AT)[_LOOKED_AT]
        useful, rate = useful[near], rate[near]
    ranked = useful[np.lexsort((useful, options.sends[useful], -relief[useful], rate))]
    # Stalls serve all links at once, so what counts is the one that lacks most.
    total = np.maximum(excess.max(axis=0), 0.0).sum() - _PROGRESS
    for at in range(0, min(len(ranked), _LOOKED_AT), _AT_ONCE):
        batch = ranked[at : at + _AT_ONCE]
        after = excess + _differences(options, now[batch], batch)
        good = np.flatnonzero(np.maximum(after.max(axis=1), 0.0).sum(axis=1) <= total)
        if len(good):
            return int(batch[good[0]]), after[good[0]]
    return None


def _differences(options: Options, old: Ints, new: Ints) -> Array:
    """[change, link, row]: what is asked more when `new` takes the place of `old`."""
    before = options.rows(old)[:, None, :] * options.load[old][:, :, None]
    return options.rows(new)[:, None, :] * options.load[new][:, :, None] - before


def _freshen(options: Options, chosen: Ints, stalls: Array) -> None:
    """Less harm, then fewer gates, then fewer messages, within what was reached."""
    grid = options.grid
    asked = options.demand(chosen)
    spare = np.maximum(grid.capacity + grid.stalls @ stalls, asked)
    merged = np.array([choice.merged for choice in options.choices])
    sums = _sums(options)
    shortest = {long: short for short, long in pairwise([sums[0], *sums])}
    ranked = _ranked(options)
    rank = np.empty_like(ranked)
    rank[ranked] = np.arange(len(ranked))
    for item in np.argsort(-options.harm[chosen], kind="stable"):
        old = int(chosen[item])
        better = ranked[options.first[item] : rank[old]]
        better = better[merged[better] >= shortest[int(merged[old])]]
        if not len(better):
            continue
        more = _differences(options, np.full(len(better), old), better)
        fits = np.flatnonzero((asked + more <= spare).all(axis=(1, 2)))
        if len(fits):
            chosen[item] = better[fits[0]]
            asked += more[fits[0]]


def _ranked(options: Options) -> Ints:
    """All of them, item by item, the freshest first."""
    order = np.arange(len(options.choices))
    return np.lexsort((order, options.sends, options.gated, options.harm, options.item))
