"""What must hold of a schedule, whoever made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from deft_horovod.capacity.problem.schedule import Placement, Schedule
from deft_horovod.errors import PlanError, explain


def broken_rules(schedule: Schedule) -> list[str]:
    """A sentence for each."""
    found = [text for one in schedule.placements for text in _of_placement(schedule, one)]
    counts = Counter(one.work for one in schedule.placements)
    found += [
        f"job {schedule.demand.works[work].name} is placed {count} times"
        for work, count in counts.items()
        if count > 1
    ]
    return [*found, *_of_units(schedule)]


def require_rules(schedule: Schedule) -> Schedule:
    """The same schedule, if it keeps all of them."""
    broken = broken_rules(schedule)
    if broken:
        raise PlanError(explain("a schedule breaks its rules", observed="; ".join(broken[:3])))
    return schedule


def _of_placement(schedule: Schedule, placement: Placement) -> Iterator[str]:
    demand = schedule.demand
    work = demand.works[placement.work]
    if placement.way not in work.ways:
        yield f"job {work.name} cannot be done in this way"
    if placement.start_s < demand.starts_from_s(work, placement.way.kind):
        yield f"job {work.name} begins too early"
    if placement.end_s > work.deadline_s:
        yield f"job {work.name} ends after its deadline"
    there = {
        unit
        for unit in placement.units
        if unit.kind == placement.way.kind and 0 <= unit.number < demand.kinds[unit.kind].count
    }
    if len(there) != placement.way.machines or len(placement.units) != len(there):
        yield f"job {work.name} has the wrong machines"


def _of_units(schedule: Schedule) -> Iterator[str]:
    """No machine is asked for more ranks or memory than it has, at any moment."""
    demand = schedule.demand
    for unit, placements in schedule.by_unit.items():
        kind = demand.kinds[unit.kind]
        for moment_s in {one.start_s for one in placements}:
            running = [one for one in placements if one.start_s <= moment_s < one.end_s]
            taken = [(one.way.ranks_of_machine(kind.ranks), one.work) for one in running]
            ranks = sum(count for count, _ in taken)
            memory = sum(count * demand.works[work].memory_bytes for count, work in taken)
            if ranks > kind.ranks:
                yield f"{kind.name} {unit.number} has {ranks} ranks at {moment_s} s"
            if memory > kind.memory_bytes:
                yield f"{kind.name} {unit.number} has too little memory at {moment_s} s"
