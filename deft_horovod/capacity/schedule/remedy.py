"""What would have to change so that a missed job is met, while all others stay where they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.schedule import Placement, Schedule
from deft_horovod.capacity.schedule.calendar import Calendar, together_s


@dataclass(frozen=True)
class Remedy:
    """A later deadline, or more machines of a kind; and what that costs beyond the rent so far."""

    work: int
    deadline_s: int | None
    kind: int | None
    machines: int
    rent: Fraction


def remedies(schedule: Schedule, work: int) -> list[Remedy]:
    """The cheapest later deadline and the cheapest additional machines; the cheaper one first."""
    later = min(
        _later(schedule, work), default=None, key=lambda one: (one.rent, one.deadline_s or 0)
    )
    more = min(_more(schedule, work), default=None, key=lambda one: _dear(schedule, one))
    found = [one for one in (later, more) if one is not None]
    return sorted(found, key=lambda one: _dear(schedule, one))


def _dear(schedule: Schedule, remedy: Remedy) -> tuple[bool, Fraction, int]:
    """To buy a machine is dearer than any rent."""
    bought = remedy.kind is not None and schedule.demand.kinds[remedy.kind].is_own
    return bought, remedy.rent, remedy.machines


def _later(schedule: Schedule, work: int) -> Iterator[Remedy]:
    """After all that is on the machines already, or on those that nobody uses."""
    demand = schedule.demand
    for way in demand.works[work].ways:
        calendars = _filled(schedule, way.kind)
        chosen = sorted(calendars, key=lambda one: (one.end_s, one.unit))[: way.machines]
        if len(chosen) == way.machines:
            start_s = together_s(chosen, demand.works[work], way)
            units = tuple(calendar.unit for calendar in chosen)
            placement = Placement(work, way, units, start_s)
            yield Remedy(work, placement.end_s, None, 0, _added(schedule, placement))


def _more(schedule: Schedule, work: int) -> Iterator[Remedy]:
    """On machines that are new."""
    demand = schedule.demand
    for way in demand.works[work].ways:
        kind = demand.kinds[way.kind]
        start_s = demand.starts_from_s(demand.works[work], way.kind)
        if start_s + way.duration_s > demand.works[work].deadline_s:
            continue
        units = tuple(Unit(way.kind, kind.count + number) for number in range(way.machines))
        placement = Placement(work, way, units, start_s)
        yield Remedy(work, None, way.kind, way.machines, _added(schedule, placement))


def _filled(schedule: Schedule, kind: int) -> list[Calendar]:
    found = []
    for unit in schedule.demand.units(kind):
        calendar = Calendar(schedule.demand, unit)
        for placement in schedule.by_unit.get(unit, ()):
            calendar.take(placement)
        found.append(calendar)
    return found


def _added(schedule: Schedule, placement: Placement) -> Fraction:
    return Schedule(schedule.demand, (*schedule.placements, placement)).rent - schedule.rent
