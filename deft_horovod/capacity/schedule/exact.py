"""The least rent, by CP-SAT, from the better of both heuristics, with a bound and a gap."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from deft_horovod.capacity.problem.demand import Demand
from deft_horovod.capacity.problem.rules import require_rules
from deft_horovod.capacity.problem.schedule import Schedule
from deft_horovod.capacity.schedule.budget import Budget
from deft_horovod.capacity.schedule.first_fit import first_fit
from deft_horovod.capacity.schedule.hybrid import hybrid
from deft_horovod.capacity.schedule.model import Model
from deft_horovod.capacity.schedule.relaxation import Bound, bound
from deft_horovod.capacity.schedule.tidy import tidied
from deft_horovod.solver.cp_sat import cp_model

_MOST_INTERVALS: Final = 40_000  # in one model; more take gigabytes before the search begins
_SPARE: Final = 2  # machines to rent beyond those that the heuristics rent of a kind
_BOUND_PART: Final = 0.25  # of the budget


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
    starts = [hybrid(demand), first_fit(demand)]
    best = start = min(starts, key=lambda schedule: schedule.cost)
    lower = Bound(0, Fraction(0))
    if best.cost > (0, 0):
        lower = bound(demand, budget.share(_BOUND_PART / 2))
        offered = _offered(demand, starts)
        if best.cost > (lower.missed, lower.rent) and _intervals(demand, offered):
            best, lower = _searched(demand, offered, best, lower, budget)
    return Found(require_rules(tidied(best)), start, lower)


def _searched(
    demand: Demand, offered: list[int], best: Schedule, lower: Bound, budget: Budget
) -> tuple[Schedule, Bound]:
    """First fewer missed jobs, then less rent. CP-SAT's own bound counts where every machine that
    there is was offered."""
    whole = offered == [kind.count for kind in demand.kinds]
    rest = budget.share(1.0 - _BOUND_PART)
    if len(best.missed) > lower.missed:
        model = Model(demand, offered)
        model.minimize_missed()
        best, least = _improved(model, best, rest.share(0.5))
        rest = rest.share(0.5)
        if whole and least is not None:
            lower = Bound(max(lower.missed, round(least)), lower.rent)
    model = Model(demand, offered)
    model.minimize_rent(len(best.missed))
    best, least = _improved(model, best, rest)
    if whole and least is not None:
        lower = Bound(lower.missed, max(lower.rent, model.money(least)))
    return best, lower


def _improved(model: Model, best: Schedule, budget: Budget) -> tuple[Schedule, float | None]:
    """The better one of the hint and what is found, and the bound."""
    model.hint(best)
    solver = budget.solver()
    status = solver.solve(model.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return best, None
    found = model.schedule(solver)
    return min(best, found, key=lambda one: one.cost), solver.best_objective_bound


def _offered(demand: Demand, starts: list[Schedule]) -> list[int]:
    """All machines where that makes no large model; else some more than the heuristics rent."""
    whole = [kind.count for kind in demand.kinds]
    if _intervals(demand, whole):
        return whole
    used = [
        max((len([u for u in start.by_unit if u.kind == index]) for start in starts), default=0)
        for index in range(len(whole))
    ]
    return [
        count if demand.kinds[index].is_own else min(count, used[index] + _SPARE)
        for index, count in enumerate(whole)
    ]


def _intervals(demand: Demand, offered: list[int]) -> bool:
    """Whether a model of so many machines is small enough."""
    count = sum(offered[way.kind] for work in demand.works for way in demand.possible(work))
    return count <= _MOST_INTERVALS
