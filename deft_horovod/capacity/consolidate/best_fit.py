"""The heuristic: each job with the parts that leave least room on the machines in use.

arXiv 1604.08330 has a heuristic within 4.3 % of its optimum, whose steps are not known here. This
one is ours: jobs by what they take of a machine, the largest first; for each one all its ways to be
fast enough compete: the one that opens fewest machines, then the one that leaves least room. That
may spread jobs that would take less together, so the same is tried with ready virtual machines.
"""

from __future__ import annotations

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
            for parts in rooms.places(index, offer)
        ]
        if found:
            _, offer, parts = min(found, key=lambda one: one[0])
            rooms.take(index, offer, parts)
    return rooms.packing()


def _cost(
    rooms: Rooms, index: int, offer: Offer, parts: list[tuple[Room, int]]
) -> tuple[int, float, float, int]:
    tenants = rooms.tenants
    opened = sum(room.unit.number >= len(rooms.open[offer.kind]) for room, _ in parts)
    left = sum(room.ranks - ranks for room, ranks in parts) / tenants.kinds[offer.kind].ranks
    share = tenants.share(tenants.tenants[index], offer)
    return opened, share, left, offer.kind
