"""What no schedule can be below: jobs as amounts of work, without an order on machines.

Each job is done in one of its ways, or missed. Whatever the order, in any span of time

- a job works at least as long as it does when it is moved out of the span as far as its release and
  its deadline allow, and
- machines of a kind give no more than their ranks times the span.

A rented kind is paid for at least the work that its ranks do, and for the start-up of as many
machines as it takes. This is an integer programme; its bound holds for every schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Final

from deft_horovod.capacity.problem.demand import Demand
from deft_horovod.capacity.problem.machine_kind import HOUR_S, MONEY_PARTS
from deft_horovod.capacity.problem.work import Way, Work
from deft_horovod.capacity.schedule.budget import NEAR, Budget
from deft_horovod.solver.cp_sat import cp_model

_MOST_MOMENTS: Final = 16  # of beginnings, and of ends, of the spans that are looked at
_LARGE: Final = 100  # jobs


@dataclass(frozen=True)
class Bound:
    """Fewer jobs cannot be missed, and as few cannot cost less."""

    missed: int
    rent: Fraction


def bound(demand: Demand, budget: Budget, most_missed: int) -> Bound:
    """Two programmes: first the jobs that are missed, then the rent with as many. `most_missed`: as
    a schedule has that is known."""
    missed = 0
    if most_missed:
        budget = budget.share(0.5)
        missed = _Relaxation(demand, budget).least_missed()
    return bound_with(demand, budget, missed)


def bound_with(demand: Demand, budget: Budget, missed: int) -> Bound:
    """Where it is known that so many are missed at least."""
    return Bound(missed, _Relaxation(demand, budget).least_rent(missed))


class _Relaxation:
    def __init__(self, demand: Demand, budget: Budget) -> None:
        self._demand, self._budget = demand, budget
        self._model = cp_model.CpModel()
        self._done: list[list[tuple[Way, cp_model.IntVar]]] = []
        self._missed: list[cp_model.IntVar] = []
        for work in demand.works:
            ways = [(way, self._model.new_bool_var("")) for way in demand.possible(work)]
            missed = self._model.new_bool_var("")
            self._model.add_exactly_one([missed, *(chosen for _, chosen in ways)])
            self._done.append(ways)
            self._missed.append(missed)
        self._units = [
            self._model.new_int_var(0, kind.count, "") if not kind.is_own else None
            for kind in demand.kinds
        ]
        for span in _spans(demand):
            self._limit(span)

    def least_missed(self) -> int:
        return max(0, ceil(self._least(sum(self._missed)) - NEAR))

    def least_rent(self, missed: int) -> Fraction:
        """With no more missed than so many."""
        self._model.add(sum(self._missed) <= missed)
        parts = [self._paid(index) for index in range(len(self._demand.kinds))]
        least = ceil(self._least(sum(parts)) - NEAR)
        return max(Fraction(0), Fraction(least, HOUR_S * MONEY_PARTS))

    def _least(self, objective: cp_model.LinearExprT) -> float:
        self._model.minimize(objective)
        solver = self._budget.solver()
        if len(self._demand.works) > _LARGE:  # presolve would take most of the budget
            solver.parameters.cp_model_presolve = False
        status = solver.solve(self._model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
            return 0.0
        return float(solver.best_objective_bound)

    def _limit(self, span: tuple[int, int]) -> None:
        """What kinds can give in a span, where all jobs together could ask for more."""
        begin_s, end_s = span
        for index, kind in enumerate(self._demand.kinds):
            given_s = kind.ranks * (end_s - begin_s)
            asked, most_s = [], 0
            for work, ways in zip(self._demand.works, self._done, strict=True):
                needed = [
                    (inside_s * _taken(self._demand, way), chosen)
                    for way, chosen in ways
                    if way.kind == index
                    and (inside_s := _least_inside_s(self._demand, work, way, span))
                ]
                asked += needed
                most_s += max((amount_s for amount_s, _ in needed), default=0)
            units = self._units[index]
            if units is None and most_s > given_s * kind.count:
                self._model.add(_weighted(asked) <= given_s * kind.count)
            elif units is not None and asked:
                self._model.add(_weighted(asked) <= given_s * units)

    def _paid(self, index: int) -> cp_model.LinearExprT:
        """In parts of money times the seconds of an hour."""
        kind, units = self._demand.kinds[index], self._units[index]
        if units is None:
            return 0
        chosen = [(way, one) for ways in self._done for way, one in ways if way.kind == index]
        worked = _weighted(
            [(_taken(self._demand, way) * way.duration_s, one) for way, one in chosen]
        )
        most = kind.count * kind.billed_units(self._demand.horizon_s)
        billed = self._model.new_int_var(0, most, "")
        started = kind.start_up_s * kind.ranks * units
        self._model.add(kind.billed_s * kind.ranks * billed >= worked + started)
        self._model.add(billed >= units)
        for way, one in chosen:
            self._model.add(units >= way.machines).only_enforce_if(one)
            own = kind.billed_units(way.duration_s + kind.start_up_s)
            self._model.add(billed >= own * way.machines).only_enforce_if(one)
        return kind.billed_s * kind.price_parts * billed


def _weighted(terms: Sequence[tuple[int, cp_model.IntVar]]) -> cp_model.LinearExpr:
    return cp_model.LinearExpr.weighted_sum(
        [one for _, one in terms], [amount for amount, _ in terms]
    )


def _taken(demand: Demand, way: Way) -> int:
    """Ranks that nobody else can have meanwhile."""
    return way.machines * way.ranks_of_machine(demand.kinds[way.kind].ranks)


def _least_inside_s(demand: Demand, work: Work, way: Way, span: tuple[int, int]) -> int:
    """How long it works in a span wherever it begins."""
    begin_s, end_s = span
    earliest_s = demand.starts_from_s(work, way.kind)
    before = max(0, begin_s - earliest_s)
    after = max(0, work.deadline_s - end_s)
    return max(0, min(way.duration_s - before, way.duration_s - after, end_s - begin_s))


def _spans(demand: Demand) -> list[tuple[int, int]]:
    begins = _some({0, *(work.release_s for work in demand.works)})
    ends = _some({work.deadline_s for work in demand.works})
    return [(begin, end) for begin, end in product(begins, ends) if begin < end]


def _some(moments: set[int]) -> list[int]:
    """The first, the last, and those between at equal distances."""
    found = sorted(moments)
    if len(found) <= _MOST_MOMENTS:
        return found
    last = len(found) - 1
    places = {round(step * last / (_MOST_MOMENTS - 1)) for step in range(_MOST_MOMENTS)}
    return [found[place] for place in sorted(places)]
