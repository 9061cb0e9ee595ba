"""Yard: all machines as the heuristics fill them, opened one after another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from deft_horovod.capacity.problem.demand import Demand, Unit
from deft_horovod.capacity.problem.schedule import Placement, Schedule
from deft_horovod.capacity.problem.work import Way
from deft_horovod.capacity.schedule.calendar import Calendar, together_s


class Yard:
    """What is open, by kind in the order of opening."""

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.open: dict[int, list[Calendar]] = defaultdict(list)
        self.placements: list[Placement] = []

    def closed(self, kind: int) -> int:
        """How many machines of a kind could still be opened."""
        return self.demand.kinds[kind].count - len(self.open[kind])

    def fresh(self, kind: int, count: int = 1) -> list[Calendar]:
        """The machines that would be opened next."""
        first = len(self.open[kind])
        return [Calendar(self.demand, Unit(kind, first + number)) for number in range(count)]

    def fits(self, work: int, way: Way, calendars: Sequence[Calendar]) -> int | None:
        """When the job would begin on them; None: not in time."""
        start_s = together_s(calendars, self.demand.works[work], way)
        in_time = start_s + way.duration_s <= self.demand.works[work].deadline_s
        return start_s if in_time else None

    def place(self, work: int, way: Way, calendars: Sequence[Calendar], start_s: int) -> None:
        """On machines that are open, or that thereby are."""
        units = tuple(calendar.unit for calendar in calendars)
        placement = Placement(work, way, units, start_s)
        for calendar in calendars:
            if calendar.unit.number >= len(self.open[calendar.unit.kind]):
                self.open[calendar.unit.kind].append(calendar)
            calendar.take(placement)
        self.placements.append(placement)

    def schedule(self) -> Schedule:
        return Schedule(self.demand, tuple(sorted(self.placements, key=lambda one: one.work)))
