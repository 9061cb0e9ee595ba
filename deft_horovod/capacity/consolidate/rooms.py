"""Rooms: what is left of each machine while a heuristic fills them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from deft_horovod.capacity.consolidate.packing import Lodging, Packing
from deft_horovod.capacity.consolidate.tenants import Offer, Tenants
from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.machine_kind import ranks_within


@dataclass
class Room:
    """Of one machine."""

    unit: Unit
    ranks: int
    memory_bytes: int
    link_is_free: bool = True

    def fits(self, memory_bytes: int) -> int:
        """Ranks of so much memory each."""
        return ranks_within(self.ranks, self.memory_bytes, memory_bytes)


class Rooms:
    """Machines that are in use, by kind in the order of opening."""

    def __init__(self, tenants: Tenants) -> None:
        self.tenants = tenants
        self.open: dict[int, list[Room]] = defaultdict(list)
        self._lodgings: list[Lodging] = []

    def fresh(self, kind: int, count: int) -> list[Room]:
        """The next ones to open, as far as there are so many."""
        machine = self.tenants.kinds[kind]
        first = len(self.open[kind])
        numbers = range(first, min(first + count, machine.count))
        return [Room(Unit(kind, n), machine.ranks, machine.memory_bytes) for n in numbers]

    def places(self, tenant: int, offer: Offer) -> Iterator[list[tuple[Room, int]]]:
        """Each machine on which all ranks fit, those in use first; or the ranks divided."""
        if not offer.together:
            parts = self.divided(tenant, offer)
            if parts is not None:
                yield parts
            return
        memory_bytes = self.tenants.tenants[tenant].memory_bytes
        for room in (*self.open[offer.kind], *self.fresh(offer.kind, 1)):
            if room.fits(memory_bytes) >= offer.ranks:
                yield [(room, offer.ranks)]

    def divided(self, tenant: int, offer: Offer) -> list[tuple[Room, int]] | None:
        """Ranks on several machines: those in use first, then as many new ones as it takes."""
        memory_bytes = self.tenants.tenants[tenant].memory_bytes
        used = [room for room in self.open[offer.kind] if room.link_is_free]
        used.sort(key=lambda room: (-room.fits(memory_bytes), room.unit))
        parts, left = [], offer.ranks
        for room in (*used, *self.fresh(offer.kind, offer.ranks)):
            ranks = min(left, room.fits(memory_bytes))
            if ranks:
                parts.append((room, ranks))
                left -= ranks
            if not left:
                return parts
        return None

    def take(self, tenant: int, offer: Offer, parts: list[tuple[Room, int]]) -> None:
        memory_bytes = self.tenants.tenants[tenant].memory_bytes
        for room, ranks in parts:
            if room.unit.number >= len(self.open[offer.kind]):
                self.open[offer.kind].append(room)
            room.ranks -= ranks
            room.memory_bytes -= ranks * memory_bytes
            room.link_is_free &= offer.together
        placed = tuple(sorted((room.unit, ranks) for room, ranks in parts))
        self._lodgings.append(Lodging(tenant, offer, placed))

    def packing(self) -> Packing:
        return Packing(self.tenants, tuple(sorted(self._lodgings, key=lambda one: one.tenant)))
