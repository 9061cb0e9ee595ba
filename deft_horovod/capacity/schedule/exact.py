"""The least rent, by CP-SAT, from the better of both heuristics, with a bound and a gap."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Final

from deft_horovod.capacity.problem.demand import Demand, Unit
from deft_horovod.capacity.problem.rules import require_rules
from deft_horovod.capacity.problem.schedule import Schedule
from deft_horovod.capacity.schedule.budget import Budget, spent
from deft_horovod.capacity.schedule.first_fit import first_fit
from deft_horovod.capacity.schedule.hybrid import hybrid
from deft_horovod.capacity.schedule.model import ScheduleModel
from deft_horovod.capacity.schedule.neighbourhood import drawn
from deft_horovod.capacity.schedule.relaxation import Bound, bound, bound_with
from deft_horovod.capacity.schedule.tidy import tidied
from deft_horovod.solver.cp_sat import cp_model

_MOST_INTERVALS: Final = 1_500  # of one model of everything
_BOUND_PART: Final = 0.4  # of the budget
_WHOLE_PART: Final = 0.3
_PIECE: Final = 0.15  # of one neighbourhood, in deterministic time
_BUILT: Final = 0.02  # of it, whatever the search takes


@dataclass(frozen=True)
class Found:
    """A schedule, and how much better another one could be."""

    schedule: Schedule
    start: Schedule  # that of the better heuristic
    bound: Bound

    @property
    def gap(self) -> float | None:
        """Of the rent, what may be too much. None: fewer jobs might be missed, so that there is
        nothing to compare."""
        if len(self.schedule.missed) > self.bound.missed:
            return None
        rent = self.schedule.rent
        return float((rent - self.bound.rent) / rent) if rent else 0.0

    @property
    def is_optimal(self) -> bool:
        return self.gap == 0.0


def solved(demand: Demand, budget: Budget | None = None) -> Found:
    """Never worse than the heuristics."""
    budget = budget or Budget()
    starts = [tidied(hybrid(demand)), tidied(first_fit(demand))]
    best = start = min(starts, key=lambda schedule: schedule.cost)
    lower = Bound(0, Fraction(0))
    if best.cost > (0, 0):
        lower = bound(demand, budget.share(_BOUND_PART), len(best.missed))
        units = [unit for kind in range(len(demand.kinds)) for unit in demand.units(kind)]
        whole = _WHOLE_PART if _intervals(demand) <= _MOST_INTERVALS else 0.0
        if whole and best.cost > (lower.missed, lower.rent):
            best, lower = _whole(demand, units, best, lower, budget.share(whole))
        best = _in_pieces(best, lower, budget.share(1.0 - _BOUND_PART - whole))
    return Found(require_rules(tidied(best)), start, lower)


def _whole(
    demand: Demand, units: list[Unit], best: Schedule, lower: Bound, budget: Budget
) -> tuple[Schedule, Bound]:
    """First fewer missed jobs, then less rent; CP-SAT's own bound counts as well."""
    if len(best.missed) > lower.missed:
        budget = budget.share(0.5)
        model = ScheduleModel(demand, units)
        model.minimize_missed()
        best, least = _improved(model, best, budget.solver())
        if least is not None and round(least) > lower.missed:
            lower = bound_with(demand, budget.share(0.5), round(least))
    model = ScheduleModel(demand, units)
    model.minimize_rent(len(best.missed))
    best, least = _improved(model, best, budget.solver())
    if least is not None and len(best.missed) == lower.missed:
        lower = Bound(lower.missed, max(lower.rent, model.money(least)))
    return best, lower


def _in_pieces(best: Schedule, lower: Bound, budget: Budget) -> Schedule:
    """Neighbourhoods until the budget is spent or the bound is reached."""
    random, left = Random(1), budget.effort  # noqa: S311
    while left > 0.0 and best.cost > (lower.missed, lower.rent):
        around = drawn(best, random)
        model = ScheduleModel(best.demand, around.units, around.fixed)
        if best.missed:
            model.minimize_missed()
            solver = Budget(_PIECE).solver()
            best, _ = _improved(model, best, solver)
            left -= spent(solver)
            model = ScheduleModel(best.demand, around.units, around.fixed)
        model.minimize_rent(len(best.missed))
        solver = Budget(_PIECE).solver()
        best, _ = _improved(model, best, solver)
        left -= spent(solver) + _BUILT
    return best


def _improved(
    model: ScheduleModel, best: Schedule, solver: cp_model.CpSolver
) -> tuple[Schedule, float | None]:
    """The better one of the hint and what is found, and the bound."""
    model.hint(best)
    status = solver.solve(model.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return best, None
    found = model.schedule(solver)
    return min(best, found, key=lambda one: one.cost), solver.best_objective_bound


def _intervals(demand: Demand) -> int:
    """Of a model of all machines."""
    return sum(
        demand.kinds[way.kind].count for work in demand.works for way in demand.possible(work)
    )
