"""First fit decreasing: the baseline. Virtual machines are ready, each goes to the first machine
that has room."""

from __future__ import annotations

from deft_horovod.capacity.consolidate.packing import Packing
from deft_horovod.capacity.consolidate.rooms import Rooms
from deft_horovod.capacity.consolidate.tenants import Tenants


def first_fit_packing(tenants: Tenants) -> Packing:
    ready = tenants.ready()
    rooms = Rooms(ready)
    for index in ready.decreasing():
        tenant = ready.tenants[index]
        for offer in tenant.offers:
            if not offer.together:
                parts = rooms.divided(index, offer)
                if parts is not None:
                    rooms.take(index, offer, parts)
                continue
            for room in (*rooms.open[offer.kind], *rooms.fresh(offer.kind, 1)):
                if room.fits(tenant.memory_bytes) >= offer.ranks:
                    rooms.take(index, offer, [(room, offer.ranks)])
                    break
    # The ready machines are among what each tenant may have.
    return Packing(tenants, rooms.packing().lodgings)
