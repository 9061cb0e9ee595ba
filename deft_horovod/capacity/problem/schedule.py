"""Schedule: which job runs where and when, and what that costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from deft_horovod.capacity.problem.demand import Demand, Unit
from deft_horovod.capacity.problem.machine_kind import MONEY_PARTS
from deft_horovod.capacity.problem.work import Way


@dataclass(frozen=True)
class Placement:
    """A job at its place."""

    work: int  # index among the works
    way: Way
    units: tuple[Unit, ...]
    start_s: int

    @property
    def end_s(self) -> int:
        return self.start_s + self.way.duration_s


@dataclass(frozen=True)
class Rental:
    """A machine from its start-up to the end of its last job."""

    unit: Unit
    from_s: int
    to_s: int
    rent: Fraction  # of money


@dataclass(frozen=True)
class Schedule:
    """What is not placed is missed."""

    demand: Demand
    placements: tuple[Placement, ...]

    @cached_property
    def missed(self) -> tuple[int, ...]:
        placed = {placement.work for placement in self.placements}
        return tuple(index for index in range(len(self.demand.works)) if index not in placed)

    @cached_property
    def by_unit(self) -> Mapping[Unit, tuple[Placement, ...]]:
        found: dict[Unit, list[Placement]] = defaultdict(list)
        for placement in sorted(self.placements, key=lambda one: (one.start_s, one.work)):
            for unit in placement.units:
                found[unit].append(placement)
        return {unit: tuple(found[unit]) for unit in sorted(found)}

    @cached_property
    def rentals(self) -> tuple[Rental, ...]:
        found = []
        for unit, placements in self.by_unit.items():
            kind = self.demand.kinds[unit.kind]
            if not kind.is_own:
                from_s = min(one.start_s for one in placements) - kind.start_up_s
                to_s = max(one.end_s for one in placements)
                parts = kind.rent_parts(to_s - from_s)
                found.append(Rental(unit, from_s, to_s, parts / MONEY_PARTS))
        return tuple(found)

    @cached_property
    def rent(self) -> Fraction:
        return sum((rental.rent for rental in self.rentals), Fraction(0))

    @property
    def cost(self) -> tuple[int, Fraction]:
        """What is least wanted first."""
        return len(self.missed), self.rent

    @property
    def end_s(self) -> int:
        return max((placement.end_s for placement in self.placements), default=0)

    def own_use(self) -> float:
        """Of the time of all own ranks up to the last deadline, the share in which they work."""
        whole_s = self.demand.own_ranks * self.demand.horizon_s
        return self._busy_s(own=True) / whole_s if whole_s else 0.0

    def paid_use(self) -> float:
        """Of the time of rented ranks that is paid for, the share in which they work."""
        kinds = self.demand.kinds
        paid_s = sum(
            kind.billed_units(rental.to_s - rental.from_s) * kind.billed_s * kind.ranks
            for rental in self.rentals
            for kind in (kinds[rental.unit.kind],)
        )
        return self._busy_s(own=False) / paid_s if paid_s else 0.0

    def _busy_s(self, *, own: bool) -> int:
        """Rank by rank; a rank that a wide job takes without need is not busy."""
        return sum(
            placement.way.ranks * placement.way.duration_s
            for placement in self.placements
            if self.demand.kinds[placement.way.kind].is_own == own
        )
