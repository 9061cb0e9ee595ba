"""What is told of a packing: which jobs share which machines; beside it stock Horovod."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from deft_horovod.capacity.answer.units import units_text
from deft_horovod.capacity.consolidate.exact import Packed
from deft_horovod.capacity.problem.machine_kind import MONEY_PARTS


@dataclass(frozen=True)
class SharedMachine:
    """A machine that is used, the jobs on it with their ranks, and what is left."""

    machine: str
    jobs: tuple[tuple[str, int], ...]
    ranks_left: int

    def to_data(self) -> dict[str, Any]:
        return {**asdict(self), "jobs": [list(one) for one in self.jobs]}


@dataclass(frozen=True)
class ToldPacking:
    """One packing."""

    found: Packed

    @property
    def machines(self) -> int:
        return self.found.packing.machines

    @property
    def rent_per_hour(self) -> float:
        return self.found.packing.price_parts / MONEY_PARTS

    @cached_property
    def shared(self) -> list[SharedMachine]:
        packing = self.found.packing
        kinds, tenants = packing.tenants.kinds, packing.tenants.tenants
        return [
            SharedMachine(
                units_text(kinds, (unit,)),
                tuple((tenants[tenant].name, ranks) for tenant, ranks in there),
                kinds[unit.kind].ranks - sum(ranks for _, ranks in there),
            )
            for unit, there in packing.by_unit.items()
        ]

    @cached_property
    def without_room(self) -> list[str]:
        packing = self.found.packing
        return [packing.tenants.tenants[index].name for index in packing.without_room]

    def to_data(self) -> dict[str, Any]:
        return {
            "machines": self.machines,
            "bound": self.found.bound,
            "gap": self.found.gap,
            "heuristic_machines": self.found.start.machines,
            "rent_per_hour": self.rent_per_hour,
            "shared": [one.to_data() for one in self.shared],
            "without_room": self.without_room,
        }


@dataclass(frozen=True)
class ConsolidationAnswer:
    """With our plans, and, if it was asked for, with stock Horovod."""

    source: str
    ours: ToldPacking
    stock: ToldPacking | None = None

    def to_data(self) -> dict[str, Any]:
        return {
            "version": 1,
            "source": self.source,
            "ours": self.ours.to_data(),
            "stock": None if self.stock is None else self.stock.to_data(),
        }
