"""Calendar: one machine as the heuristics fill it, each rank from where its last job ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from deft_horovod.capacity.problem.demand import Demand, Unit
from deft_horovod.capacity.problem.schedule import Placement
from deft_horovod.capacity.problem.work import Way, Work


class Calendar:
    """Nothing is put before what is there already."""

    def __init__(self, demand: Demand, unit: Unit) -> None:
        self.unit = unit
        self.kind = demand.kinds[unit.kind]
        self.placements: list[Placement] = []
        self._demand = demand
        self._free_s = [self.kind.start_up_s] * self.kind.ranks
        self._scarce = demand.memory_is_scarce(unit.kind)

    @property
    def free_s(self) -> int:
        """When its first rank is free."""
        return self._free_s[0]

    @property
    def end_s(self) -> int:
        """When its last rank is."""
        return self._free_s[-1]

    def start_s(self, work: Work, way: Way) -> int:
        """When the job could begin."""
        ranks = way.ranks_of_machine(self.kind.ranks)
        start_s = max(work.release_s, self._free_s[ranks - 1])
        if self._scarce:
            start_s = self._with_memory_s(ranks * work.memory_bytes, start_s)
        return start_s

    def take(self, placement: Placement) -> None:
        """Ranks that were free last, so that what is free longest stays so."""
        ranks = placement.way.ranks_of_machine(self.kind.ranks)
        free = bisect_right(self._free_s, placement.start_s)
        self._free_s[free - ranks : free] = [placement.end_s] * ranks
        self._free_s.sort()
        self.placements.append(placement)

    def _with_memory_s(self, memory_bytes: int, start_s: int) -> int:
        """Not before so much is free; what began before goes on, and nothing begins later."""
        later = sorted({one.end_s for one in self.placements if one.end_s > start_s})
        for moment_s in (start_s, *later):
            taken = sum(
                one.way.ranks_of_machine(self.kind.ranks)
                * self._demand.works[one.work].memory_bytes
                for one in self.placements
                if one.start_s <= moment_s < one.end_s
            )
            waiting = [one.start_s for one in self.placements if one.start_s > moment_s]
            if not waiting and taken + memory_bytes <= self.kind.memory_bytes:
                return moment_s
        return later[-1] if later else start_s


def together_s(calendars: Sequence[Calendar], work: Work, way: Way) -> int:
    """When the job could begin on all of them."""
    return max(calendar.start_s(work, way) for calendar in calendars)
