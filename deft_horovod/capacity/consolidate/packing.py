"""Packing: which job has how many ranks on which machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from deft_horovod.capacity.consolidate.tenants import Offer, Tenants
from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.errors import PlanError, explain


@dataclass(frozen=True)
class Lodging:
    """A tenant at its place: ranks on each machine, in the order of the machines."""

    tenant: int
    offer: Offer
    parts: tuple[tuple[Unit, int], ...]


@dataclass(frozen=True)
class Packing:
    """Tenants without a lodging found no room."""

    tenants: Tenants
    lodgings: tuple[Lodging, ...]

    @cached_property
    def by_unit(self) -> Mapping[Unit, tuple[tuple[int, int], ...]]:
        """Of each machine that is used, the tenants there and how many ranks each has."""
        found: dict[Unit, list[tuple[int, int]]] = defaultdict(list)
        for lodging in self.lodgings:
            for unit, ranks in lodging.parts:
                found[unit].append((lodging.tenant, ranks))
        return {unit: tuple(found[unit]) for unit in sorted(found)}

    @cached_property
    def without_room(self) -> tuple[int, ...]:
        placed = {lodging.tenant for lodging in self.lodgings}
        return tuple(i for i in range(len(self.tenants.tenants)) if i not in placed)

    @property
    def machines(self) -> int:
        return len(self.by_unit)

    @property
    def price_parts(self) -> int:
        """Rent of an hour."""
        return sum(self.tenants.kinds[unit.kind].price_parts for unit in self.by_unit)

    @property
    def cost(self) -> tuple[int, int, int]:
        """What is least wanted first."""
        return len(self.without_room), self.machines, self.price_parts


def broken_packing(packing: Packing) -> list[str]:
    """A sentence for each rule that does not hold."""
    of_lodgings = (text for one in packing.lodgings for text in _of_lodging(packing, one))
    return [*of_lodgings, *_of_machines(packing)]


def require_packing(packing: Packing) -> Packing:
    """The same packing, if it keeps all rules."""
    broken = broken_packing(packing)
    if broken:
        raise PlanError(explain("a packing breaks its rules", observed="; ".join(broken[:3])))
    return packing


def _of_lodging(packing: Packing, lodging: Lodging) -> Iterator[str]:
    tenant = packing.tenants.tenants[lodging.tenant]
    offer = lodging.offer
    units = {unit for unit, _ in lodging.parts}
    if offer not in tenant.offers:
        yield f"job {tenant.name} is not fast enough"
    if sum(ranks for _, ranks in lodging.parts) != offer.ranks:
        yield f"job {tenant.name} has the wrong number of ranks"
    count = packing.tenants.kinds[offer.kind].count
    if any(unit.kind != offer.kind or unit.number >= count for unit in units):
        yield f"job {tenant.name} is on the wrong machines"
    if len(units) != len(lodging.parts) or (offer.together and len(units) > 1):
        yield f"job {tenant.name} is divided wrongly"


def _of_machines(packing: Packing) -> Iterator[str]:
    spread = {lodging.tenant for lodging in packing.lodgings if not lodging.offer.together}
    for unit, there in packing.by_unit.items():
        kind = packing.tenants.kinds[unit.kind]
        name = f"{kind.name} {unit.number}"
        memory = sum(
            ranks * packing.tenants.tenants[tenant].memory_bytes for tenant, ranks in there
        )
        if sum(ranks for _, ranks in there) > kind.ranks:
            yield f"{name} has too few ranks"
        if memory > kind.memory_bytes:
            yield f"{name} has too little memory"
        if sum(tenant in spread for tenant, _ in there) > 1:
            yield f"the link of {name} serves several jobs"
