"""Grid: where in a period link time is asked for, and how much of it there is.

A *cell* is a pair of a release (a step and a point of its backward) and a deadline (the end of
backward some steps later, or a gate in the next forward). What the generations of a plan ask for is
a number for each cell. One link can serve it, interrupting messages at will, exactly if for every
interval of time the messages released and due inside take no longer than it lasts (the demand
criterion for one machine: Horn, "Some simple scheduling algorithms", Naval Research Logistics
Quarterly 21, 1974). So there is one row for each interval from a release to a deadline, and none
for windows: which window a message rides in follows from the order of deadlines.

Where compute has to stand still (*stall*), at the end of backward or at a gate, time is added to
all intervals that contain that moment. The period is a cycle. An interval longer than a period
needs no row: it asks for at most one whole period more than the one that is shorter by a period,
and that the whole fits a period is a row of its own.

Times are whole ticks, a millionth of a step, so that results do not depend on rounding. To bound
the rows, releases are moved to the next of a few points, gates to the one before: that only makes
the demand harder to serve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from deft_horovod.solver.problem import Problem

STEP_TICKS: Final = 1_000_000
MOST_STEPS: Final = 1_000  # that all messages take; if more, a tick is a larger part of a step
_LEAST_US: Final = 1e-6  # nothing that is measured is shorter
# Points for the releases of a backward, and for the gates of a forward, shared by the steps.
_RELEASES: Final = 32
_GATES: Final = 16
_FEWEST_RELEASES: Final = 4

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    problem: Problem
    period: int
    delays: int  # deadlines at the ends of so many backwards: 0 .. delays - 1 steps later
    releases: tuple[int, ...]  # ticks since backward began, ascending
    gates: tuple[int, ...]  # ticks since forward began, ascending
    release_of: tuple[int, ...]  # of each item: which point
    gate_of: tuple[int | None, ...]
    demand: Array  # [cell, row]: 1 where the cell lies in the interval; the last cell is in none
    stalls: Array  # [row, stall]: how often the interval contains it
    capacity: Array  # [row], ticks
    stall_at_end: NDArray[np.int64]  # [row]: the last stall that the interval contains
    rate: float  # ticks of a microsecond

    @property
    def kinds(self) -> int:
        return self.delays + len(self.gates)

    @property
    def cells(self) -> int:
        return self.period * len(self.releases) * self.kinds

    def cell(self, item: int, step: int, delay: int, gated: bool) -> int:
        """Where a generation that is complete in this step of the period asks for time."""
        gate = self.gate_of[item] if gated else None
        kind = delay if gate is None else self.delays + gate
        return (step * len(self.releases) + self.release_of[item]) * self.kinds + kind

    def ticks(self, time_us: float) -> int:
        """Rounded up."""
        return math.ceil(time_us * self.rate - 1e-6)

    def exposed_us(self, stalls: Array) -> float:
        """Of a step."""
        return float(stalls.sum()) / self.rate / self.period


def tick_rate(problem: Problem) -> float:
    """Ticks of a microsecond."""
    travels_us = sum(max(times) for item in problem.items for times in item.times_us)
    # Where next to nothing is computed, what travels is the scale, or numbers would know no end.
    scale_us = max(problem.step_us, travels_us / MOST_STEPS)
    return STEP_TICKS / scale_us if scale_us > _LEAST_US else 1.0


def make_grid(problem: Problem, period: int) -> Grid:
    rate = tick_rate(problem)
    delays = min(problem.limits.max_delay, period) + 1
    ready = [math.ceil(item.ready_us * rate) for item in problem.items]
    needs = [None if item.need_us is None else int(item.need_us * rate) for item in problem.items]
    releases = _points(ready, max(_FEWEST_RELEASES, _RELEASES // period), keep_last=True)
    gates = _points([need for need in needs if need is not None], max(1, _GATES // period))
    release_of = tuple(int(np.searchsorted(releases, ticks)) for ticks in ready)
    gate_of = tuple(
        None if ticks is None else int(np.searchsorted(gates, ticks, side="right")) - 1
        for ticks in needs
    )
    axis = _Axis(problem, period, delays, releases, gates, rate)
    return Grid(problem, period, delays, releases, gates, release_of, gate_of, *axis.rows(), rate)


def _points(values: Sequence[int], limit: int, keep_last: bool = False) -> tuple[int, ...]:
    """At most `limit` of the values, evenly spaced among them, with the last or the first one."""
    known = sorted(set(values))
    if len(known) <= limit:
        return tuple(known)
    if keep_last:
        return tuple(known[-1 - len(known) * i // limit] for i in reversed(range(limit)))
    return tuple(known[len(known) * i // limit] for i in range(limit))


class _Axis:
    """The compute time of one period, from the beginning of its first forward on, in ticks."""

    def __init__(
        self,
        problem: Problem,
        period: int,
        delays: int,
        releases: tuple[int, ...],
        gates: tuple[int, ...],
        rate: float,
    ) -> None:
        self.step = int(problem.step_us * rate)
        self.backward = int(problem.forward_us * rate)
        # Points never lie beyond the end, whatever was rounded.
        self.end = max(
            int((problem.forward_us + problem.backward_us) * rate),
            self.backward + (releases[-1] if releases else 0),
        )
        self.step = max(self.step, self.end, 1)
        self.period, self.delays = period, delays
        self.releases, self.gates = np.array(releases, int), np.array(gates, int)
        self.margin = problem.margin

    def rows(self) -> tuple[Array, Array, Array, NDArray[np.int64]]:
        steps = np.arange(self.period)
        length = self.period * self.step
        begins = (steps[:, None] * self.step + self.backward + self.releases).ravel()
        begin, end = self._intervals(begins, length)
        release, due = self._cells(begins)
        # The instance of the cell that is the first to be released in the interval.
        cycle = np.maximum(0, -(-(begin - release[:, None]) // length))
        inside = due[:, None] + cycle * length <= end
        at = self._stalls()
        times = (end[:, None] - at) // length - -(-(begin[:, None] - at) // length) + 1
        rows = len(begin) + 1
        demand = np.zeros((len(release) + 1, rows))
        demand[:-1, :-1] = inside
        demand[:-1, -1] = 1.0
        stalls = np.ones((rows, len(at)))
        stalls[:-1] = np.maximum(0, times)
        lasts = np.append(end - begin, length)
        # Every interval ends at a deadline, and at each deadline there is a stall.
        at_end = np.append(np.argmin((end[:, None] - at) % length, axis=1), 0)
        return demand, stalls, np.floor(lasts * self.margin), at_end

    def _intervals(self, begins: NDArray[np.int64], length: int) -> tuple[Array, Array]:
        """From each release to each deadline behind it, up to a period."""
        steps = np.arange(2 * self.period + 1) * self.step
        ends = np.concatenate([steps + self.end, (steps[:, None] + self.gates).ravel()])
        ends.sort()
        begin, end = (grid.ravel() for grid in np.meshgrid(begins, ends, indexing="ij"))
        kept = (end >= begin) & (end - begin <= length)
        return begin[kept], end[kept]

    def _cells(self, begins: NDArray[np.int64]) -> tuple[Array, Array]:
        """When each cell is released, and when it is due."""
        step = np.repeat(np.arange(self.period) * self.step, len(self.releases))
        late = np.arange(self.delays) * self.step + self.end
        kinds = np.concatenate([late, self.step + self.gates])
        due = (step[:, None] + kinds).ravel()
        return np.repeat(begins, len(kinds)), due

    def _stalls(self) -> NDArray[np.int64]:
        """Where compute can stand still: at the end of each backward, and at the gates."""
        points = np.concatenate([[self.end], self.gates])
        stalls: NDArray[np.int64] = np.arange(self.period)[:, None] * self.step + points
        return stalls.ravel()
