"""The schedule as a constraint model: an optional interval for each job on each machine.

A job has one start. It is done in one of its ways, or missed. A way takes its number of machines of
its kind; on each of them an interval of the way's length demands ranks and memory, which the
machine's cumulative constraints limit. A rented machine is paid from its start-up before its first
job to the end of its last one, in units of what is billed. Jobs may be fixed where they are, so
that the model is of the others alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from deft_horovod.capacity.problem.demand import Demand, Unit
from deft_horovod.capacity.problem.machine_kind import HOUR_S, MONEY_PARTS
from deft_horovod.capacity.problem.schedule import Placement, Schedule
from deft_horovod.capacity.problem.work import Way
from deft_horovod.capacity.schedule.budget import NEAR
from deft_horovod.solver.cp_sat import cp_model


@dataclass
class _Asked:
    """What jobs would take of one machine."""

    intervals: list[cp_model.IntervalVar] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)
    there: list[tuple[int, Way, cp_model.IntVar]] = field(default_factory=list)


class ScheduleModel:
    """Of the jobs of a demand that are not fixed, on these machines."""

    def __init__(
        self, demand: Demand, units: Sequence[Unit], fixed: Sequence[Placement] = ()
    ) -> None:
        self.demand = demand
        self.model = cp_model.CpModel()
        self._fixed = fixed
        self._units: dict[int, list[Unit]] = defaultdict(list)
        self._asked = {unit: _Asked() for unit in sorted(units)}
        for unit in self._asked:
            self._units[unit.kind].append(unit)
        self._starts: dict[int, cp_model.IntVar] = {}
        self._chosen: dict[int, list[tuple[Way, cp_model.IntVar]]] = {}
        self._missed: dict[int, cp_model.IntVar] = {}
        self._rented: dict[Unit, tuple[cp_model.IntVar, ...]] = {}
        placed = {one.work for one in fixed}
        for index in range(len(demand.works)):
            if index not in placed:
                self._add_work(index)
        there = Schedule(demand, tuple(fixed)).by_unit
        for unit, asked in self._asked.items():
            self._limit(unit, asked, there.get(unit, ()))
        self._paid = [
            self._pay(unit, self._asked[unit], there.get(unit, ()))
            for unit in self._asked
            if not demand.kinds[unit.kind].is_own
        ]
        if not fixed:
            self._order()

    def minimize_missed(self) -> None:
        self.model.minimize(sum(self._missed.values()))

    def minimize_rent(self, missed: int) -> None:
        """With no more missed than so many."""
        if missed:
            self.model.add(sum(self._missed.values()) <= missed)
        else:
            for one in self._missed.values():
                self.model.add(one == 0)
        self.model.minimize(sum(self._paid))

    def hint(self, schedule: Schedule) -> None:
        """Where to begin: a schedule in which fixed jobs are where they are here."""
        placed = {placement.work: placement for placement in schedule.placements}
        by_unit = schedule.by_unit
        for index, ways in self._chosen.items():
            one = placed.get(index)
            self.model.add_hint(self._missed[index], one is None)
            if one is not None:
                self.model.add_hint(self._starts[index], one.start_s)
            for way, chosen in ways:
                self.model.add_hint(chosen, one is not None and one.way == way)
        for unit, asked in self._asked.items():
            there = {(one.work, one.way) for one in by_unit.get(unit, ())}
            for work, way, present in asked.there:
                self.model.add_hint(present, (work, way) in there)
        for rental in schedule.rentals:
            if rental.unit in self._rented:
                used, from_s, to_s, billed = self._rented[rental.unit]
                kind = self.demand.kinds[rental.unit.kind]
                self.model.add_hint(used, 1)
                self.model.add_hint(from_s, rental.from_s)
                self.model.add_hint(to_s, rental.to_s)
                self.model.add_hint(billed, kind.billed_units(rental.to_s - rental.from_s))

    def schedule(self, solver: cp_model.CpSolver) -> Schedule:
        """What was found."""
        units: dict[int, list[Unit]] = defaultdict(list)
        for unit in self._asked:
            for work, _, present in self._asked[unit].there:
                if solver.boolean_value(present):
                    units[work].append(unit)
        placements = [
            Placement(index, way, tuple(units[index]), solver.value(self._starts[index]))
            for index, ways in self._chosen.items()
            for way, chosen in ways
            if solver.boolean_value(chosen)
        ]
        return Schedule(self.demand, (*self._fixed, *placements))

    def money(self, objective: float) -> Fraction:
        """Of a bound for `minimize_rent`."""
        return Fraction(max(0, ceil(objective - NEAR)), HOUR_S * MONEY_PARTS)

    def _add_work(self, index: int) -> None:
        work, model = self.demand.works[index], self.model
        ways = list(self.demand.possible(work))
        start_s = model.new_int_var(work.release_s, work.deadline_s, "")
        missed = model.new_bool_var("")
        chosen = [(way, model.new_bool_var("")) for way in ways]
        model.add_exactly_one([missed, *(one for _, one in chosen)])
        for way, one in chosen:
            latest_s = work.deadline_s - way.duration_s
            earliest_s = self.demand.starts_from_s(work, way.kind)
            model.add_linear_constraint(start_s, earliest_s, latest_s).only_enforce_if(one)
            there = [self._add_there(index, way, unit, start_s) for unit in self._units[way.kind]]
            model.add(sum(there) == way.machines * one)
        self._starts[index] = start_s
        self._missed[index] = missed
        self._chosen[index] = chosen

    def _add_there(
        self, index: int, way: Way, unit: Unit, start_s: cp_model.IntVar
    ) -> cp_model.IntVar:
        present = self.model.new_bool_var("")
        asked = self._asked[unit]
        ranks = way.ranks_of_machine(self.demand.kinds[unit.kind].ranks)
        asked.intervals.append(
            self.model.new_optional_fixed_size_interval_var(start_s, way.duration_s, present, "")
        )
        asked.ranks.append(ranks)
        asked.memory_bytes.append(ranks * self.demand.works[index].memory_bytes)
        asked.there.append((index, way, present))
        return present

    def _limit(self, unit: Unit, asked: _Asked, fixed: Sequence[Placement]) -> None:
        kind, model = self.demand.kinds[unit.kind], self.model
        for one in fixed:
            ranks = one.way.ranks_of_machine(kind.ranks)
            asked.intervals.append(
                model.new_fixed_size_interval_var(one.start_s, one.way.duration_s, "")
            )
            asked.ranks.append(ranks)
            asked.memory_bytes.append(ranks * self.demand.works[one.work].memory_bytes)
        if kind.ranks == 1:
            model.add_no_overlap(asked.intervals)
        else:
            model.add_cumulative(asked.intervals, asked.ranks, kind.ranks)
        if self.demand.memory_is_scarce(unit.kind):
            model.add_cumulative(asked.intervals, asked.memory_bytes, kind.memory_bytes)

    def _pay(self, unit: Unit, asked: _Asked, fixed: Sequence[Placement]) -> cp_model.LinearExprT:
        """In parts of money times the seconds of an hour."""
        kind, model, horizon_s = self.demand.kinds[unit.kind], self.model, self.demand.horizon_s
        used = model.new_bool_var("")
        from_s = model.new_int_var(0, horizon_s, "")
        to_s = model.new_int_var(0, horizon_s, "")
        billed = model.new_int_var(0, kind.billed_units(horizon_s), "")
        for work, way, present in asked.there:
            start_s = self._starts[work]
            model.add_implication(present, used)
            model.add(from_s <= start_s - kind.start_up_s).only_enforce_if(present)
            model.add(to_s >= start_s + way.duration_s).only_enforce_if(present)
            least = kind.billed_units(kind.start_up_s + way.duration_s)
            model.add(billed >= least).only_enforce_if(present)
        for one in fixed:
            model.add(used == 1)
            model.add(from_s <= one.start_s - kind.start_up_s)
            model.add(to_s >= one.end_s)
        model.add(kind.billed_s * billed >= to_s - from_s)
        if kind.ranks == 1 and not fixed:
            worked = sum(way.duration_s * present for _, way, present in asked.there)
            model.add(kind.billed_s * billed >= worked + kind.start_up_s * used)
        self._rented[unit] = (used, from_s, to_s, billed)
        return kind.billed_s * kind.price_parts * billed

    def _order(self) -> None:
        """Rented machines of a kind are alike, so the first ones are used first."""
        for (used, *_), (unit, (after, *_)) in zip(
            self._rented.values(), list(self._rented.items())[1:], strict=False
        ):
            if unit.number:
                self.model.add_implication(after, used)
