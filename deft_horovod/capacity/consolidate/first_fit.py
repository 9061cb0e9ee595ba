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
        for offer in ready.tenants[index].offers:
            first = next(rooms.places(index, offer), None)
            if first is not None:
                rooms.take(index, offer, first)
    # The ready machines are among what each tenant may have.
    return Packing(tenants, rooms.packing().lodgings)
