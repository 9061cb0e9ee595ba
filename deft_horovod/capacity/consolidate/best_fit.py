"""The heuristic: each job with the parts that leave least room on the machines in use.

arXiv 1604.08330 has a heuristic within 4.3 % of its optimum, whose steps are not known here. This
one is ours: jobs by what they take of a machine, the largest first; for each one all its ways to be
fast enough compete: the one that opens fewest machines, then the one that leaves least room. That
may spread jobs that would take less together, so the same is tried with ready virtual machines.
"""

from __future__ import annotations

from collections.abc import Iterator

from deft_horovod.capacity.consolidate.packing import Packing
from deft_horovod.capacity.consolidate.rooms import Room, Rooms
from deft_horovod.capacity.consolidate.tenants import Offer, Tenants


def best_fit(tenants: Tenants) -> Packing:
    """The better one of both."""
    free, ready = _filled(tenants), _filled(tenants.ready())
    return min(free, Packing(tenants, ready.lodgings), key=lambda packing: packing.cost)


def _filled(tenants: Tenants) -> Packing:
    rooms = Rooms(tenants)
    for index in tenants.decreasing():
        found = [
            (_cost(rooms, index, offer, parts), offer, parts)
            for offer in tenants.tenants[index].offers
            for parts in _places(rooms, index, offer)
        ]
        if found:
            _, offer, parts = min(found, key=lambda one: one[0])
            rooms.take(index, offer, parts)
    return rooms.packing()


def _places(rooms: Rooms, index: int, offer: Offer) -> Iterator[list[tuple[Room, int]]]:
    if not offer.together:
        parts = rooms.divided(index, offer)
        if parts is not None:
            yield parts
        return
    memory_bytes = rooms.tenants.tenants[index].memory_bytes
    for room in (*rooms.open[offer.kind], *rooms.fresh(offer.kind, 1)):
        if room.fits(memory_bytes) >= offer.ranks:
            yield [(room, offer.ranks)]


def _cost(
    rooms: Rooms, index: int, offer: Offer, parts: list[tuple[Room, int]]
) -> tuple[int, float, float, int]:
    tenants = rooms.tenants
    opened = sum(room.unit.number >= len(rooms.open[offer.kind]) for room, _ in parts)
    left = sum(room.ranks - ranks for room, ranks in parts) / tenants.kinds[offer.kind].ranks
    share = tenants.share(tenants.tenants[index], offer)
    return opened, share, left, offer.kind
