"""What rent leaves open: jobs begin as early as they can, machines are numbered by first use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from deft_horovod.capacity.problem.demand import Demand, Unit
from deft_horovod.capacity.problem.rules import broken_rules
from deft_horovod.capacity.problem.schedule import Placement, Schedule


def tidied(schedule: Schedule) -> Schedule:
    """Job by job, the earliest first; each at the first moment at which it fits its machines."""
    demand = schedule.demand
    placements = {one.work: one for one in schedule.placements}
    for one in sorted(
        schedule.placements, key=lambda placement: (placement.start_s, placement.work)
    ):
        # Nothing changes on other machines than its own.
        beside = [
            other
            for other in placements.values()
            if other.work != one.work and set(other.units) & set(one.units)
        ]
        before = Schedule(demand, (*beside, one))
        for start_s in _moments(demand, beside, one):
            moved = replace(one, start_s=start_s)
            trial = Schedule(demand, (*beside, moved))
            if trial.rent <= before.rent and not broken_rules(trial):
                placements[one.work] = moved
                break
    return _numbered(Schedule(demand, tuple(placements[work] for work in sorted(placements))))


def _numbered(schedule: Schedule) -> Schedule:
    """The first machine of a kind to be used is its first one."""
    order: dict[Unit, Unit] = {}
    taken: Counter[int] = Counter()
    for one in sorted(schedule.placements, key=lambda placed: (placed.start_s, placed.work)):
        for unit in one.units:
            if unit not in order:
                order[unit] = Unit(unit.kind, taken[unit.kind])
                taken[unit.kind] += 1
    placements = (
        replace(one, units=tuple(sorted(order[unit] for unit in one.units)))
        for one in schedule.placements
    )
    return Schedule(schedule.demand, tuple(placements))


def _moments(demand: Demand, beside: Sequence[Placement], one: Placement) -> list[int]:
    """When it could begin earlier: at its release, or when another job ends there."""
    earliest_s = demand.starts_from_s(demand.works[one.work], one.way.kind)
    ends = {other.end_s for other in beside}
    return sorted(moment for moment in {earliest_s, *ends} if earliest_s <= moment < one.start_s)
