"""Exact: the choice of all items by CP-SAT, in the order of the goals.

1. The time that compute stands still. Skipped where the greedy solution has no more than the link
   time that is missing whatever is chosen.
2. Within that: harm; with ties fewer gates, and then fewer messages. One weighted sum, as the
   weights of a coarser goal outweigh all that the finer ones can add up to.

One worker, a fixed seed and a limit in deterministic time, which counts operations and not seconds:
the same input gives the same choice whatever else the machine is doing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from deft_horovod.solver.cp_sat import cp_model
from deft_horovod.solver.least_stale.greedy import Solution, stalls_for
from deft_horovod.solver.least_stale.link_time import Array, Grid
from deft_horovod.solver.least_stale.options import Options

SEED: Final = 1
# Of CP-SAT's deterministic time; a unit is some seconds.
EXPOSED_LIMIT: Final = 0.05
HARM_LIMIT: Final = 0.05
# Harm is counted in so many units, finer differences in weights are not seen.
_HARM_UNITS: Final = 1_000_000
# What may be exposed for the sake of less harm, as a share of compute: too little to measure.
EXPOSED_TOLERANCE: Final = 0.001


def improve(options: Options, start: Solution) -> Solution:
    """The best solution found, never worse than `start`."""
    if not len(start.chosen):
        return start
    best, proven = start, True
    links = range(options.load.shape[1])
    rows = [_hardest_rows(options.grid, _used_cells(options, link)) for link in links]
    tolerance = math.floor(EXPOSED_TOLERANCE * float(options.grid.capacity[-1]))
    if start.exposed > _least_exposed(options) + tolerance:
        best, proven = _solve(options, rows, best, most_exposed=None, limit=EXPOSED_LIMIT)
    allowed = max(best.exposed, tolerance)
    best, fresh = _solve(options, rows, best, most_exposed=allowed, limit=HARM_LIMIT)
    status = "optimal" if proven and fresh else "feasible"
    return Solution(options, best.chosen, best.stalls, status)


def _least_exposed(options: Options) -> float:
    """Ticks of a period: what the links cannot carry whatever is chosen, all of it and in the
    hardest interval."""
    grid = options.grid
    asked = options.load.sum(axis=1) * (options.cells < grid.cells).sum(axis=1)
    least = float(np.minimum.reduceat(asked, options.first[:-1]).sum())
    links = options.load.shape[1]
    whole: float = least / links - float(grid.capacity[-1])
    missing = _least_demand(options) - grid.capacity
    hardest = float((missing / np.maximum(grid.stalls.max(axis=1), 1.0)).max())
    return max(0.0, whole, hardest)


def _least_demand(options: Options) -> Array:
    """[link, row]: what all items together ask of each interval at least."""
    least = np.zeros((options.load.shape[1], len(options.grid.capacity)))
    for item in range(len(options.first) - 1):
        mine = slice(options.first[item], options.first[item + 1])
        rows = options.rows(mine)
        for link in range(len(least)):
            least[link] += (rows * options.load[mine, link, None]).min(axis=0)
    return least


def _solve(
    options: Options,
    rows: Sequence[Sequence[int]],
    start: Solution,
    *,
    most_exposed: float | None,
    limit: float,
) -> tuple[Solution, bool]:
    """Without `most_exposed` the least exposed, else the least harmful within it; and whether that
    is proven to be the best. `rows`: by link, the intervals that are not implied by others.
    """
    model = cp_model.CpModel()
    picks = [model.new_bool_var("") for _ in options.choices]
    for item in range(len(start.chosen)):
        model.add_exactly_one(picks[option] for option in options.of(item))
    grid = options.grid
    longest = int(start.exposed if most_exposed is None else most_exposed)
    stalls = [model.new_int_var(0, longest, "") for _ in range(grid.stalls.shape[1])]
    _add_rows(model, options, rows, picks, stalls)
    for option, pick in enumerate(picks):
        model.add_hint(pick, bool(start.chosen[options.item[option]] == option))
    for stall, ticks in zip(stalls, start.stalls, strict=True):
        model.add_hint(stall, int(ticks))
    if most_exposed is None:
        model.minimize(sum(stalls))
    else:
        model.add(sum(stalls) <= int(most_exposed))
        costs = _costs(options)
        model.minimize(cp_model.LinearExpr.weighted_sum(picks, [int(cost) for cost in costs]))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = SEED
    solver.parameters.max_deterministic_time = limit
    solver.parameters.linearization_level = 2  # bounds come from the relaxation
    solver.parameters.cp_model_probing_level = 0  # finds nothing here
    solver.parameters.presolve_inclusion_work_limit = 0  # nor does this: see _hardest_rows
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return start, False
    values = np.array([solver.boolean_value(pick) for pick in picks])
    chosen = np.flatnonzero(values)
    found = Solution(options, chosen, stalls_for(grid, options.demand(chosen)))
    exact = np.array([solver.value(stall) for stall in stalls], dtype=np.float64)
    if exact.sum() < found.exposed:
        found = Solution(options, chosen, exact)
    is_worse = (
        found.exposed > start.exposed
        if most_exposed is None
        else found.exposed > most_exposed or found.key()[1:] > start.key()[1:]
    )
    return (start if is_worse else found), status == cp_model.OPTIMAL


def _add_rows(
    model: cp_model.CpModel,
    options: Options,
    rows: Sequence[Sequence[int]],
    picks: list[cp_model.IntVar],
    stalls: list[cp_model.IntVar],
) -> None:
    """No interval is asked for more than it has. One variable for what each cell is asked for, as
    each pick lies in few cells, but each cell in many intervals."""
    grid = options.grid
    for link, hardest in enumerate(rows):
        cells = _add_cells(model, options, picks, link)
        used = sorted(cells)
        for row in hardest:
            asked = [cells[used[place]] for place in np.flatnonzero(grid.demand[used, row])]
            rest = cp_model.LinearExpr.weighted_sum(stalls, [int(n) for n in grid.stalls[row]])
            model.add(cp_model.LinearExpr.sum(asked) <= rest + int(grid.capacity[row]))


def _used_cells(options: Options, link: int) -> list[int]:
    """In which anything can be asked of a link."""
    found = np.unique(options.cells[options.load[:, link] > 0.0])
    return [int(cell) for cell in found if cell < options.grid.cells]


def _hardest_rows(grid: Grid, used: Sequence[int]) -> list[int]:
    """Those that no other one implies: one over the same cells and more, which is as short and
    contains no more stalls. CP-SAT would find them itself, but takes longer for it than to solve.
    """
    order = np.argsort(grid.capacity, kind="stable")
    inside = grid.demand[used][:, order].T
    sizes = inside.sum(axis=1)
    covers = inside @ inside.T == sizes  # [row, other]: all cells of the other lie in the row
    stalls = grid.stalls[order]
    implied = np.zeros(len(order), dtype=bool)
    for place in range(len(order)):  # the shortest first; none that comes later implies it
        if not sizes[place] or implied[place]:
            implied[place] = True
            continue
        longer = np.flatnonzero(covers[place, place + 1 :]) + place + 1
        implied[longer] |= (stalls[place] <= stalls[longer]).all(axis=1)
    return [int(row) for row in order[~implied]]


def _add_cells(
    model: cp_model.CpModel, options: Options, picks: list[cp_model.IntVar], link: int
) -> dict[int, cp_model.IntVar]:
    """What each cell is asked for on a link; those that nothing asks are left out."""
    asked: dict[int, tuple[list[cp_model.IntVar], list[int]]] = {}
    for option, pick in enumerate(picks):
        ticks = int(options.load[option, link])
        for cell in options.cells[option]:
            if ticks and cell < options.grid.cells:
                terms = asked.setdefault(int(cell), ([], []))
                terms[0].append(pick)
                terms[1].append(ticks)
    cells = {}
    for cell, (variables, ticks_of) in asked.items():
        cells[cell] = model.new_int_var(0, sum(ticks_of), "")
        model.add(cp_model.LinearExpr.weighted_sum(variables, ticks_of) == cells[cell])
    return cells


def _costs(options: Options) -> Array:
    """Of each option: harm, then gates, then messages."""
    most = _most(options, options.harm)
    harm = np.round(options.harm * (_HARM_UNITS / most if most > 0.0 else 0.0))
    gates = np.where(options.gated, 1.0 + _most(options, options.sends), 0.0)
    finer = gates + options.sends
    costs: Array = harm * (1.0 + _most(options, finer)) + finer
    return costs


def _most(options: Options, costs: Array) -> float:
    """What the dearest option of each item adds up to."""
    return float(np.maximum.reduceat(costs, options.first[:-1]).sum())
