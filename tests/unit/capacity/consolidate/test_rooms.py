"""Rooms: what is left of machines."""

from deft_horovod.capacity.consolidate.rooms import Rooms
from deft_horovod.capacity.consolidate.tenants import Offer, Tenant, Tenants
from deft_horovod.capacity.problem.machine_kind import MachineKind

SPREAD = Offer(0, 6, together=False)
TENANTS = Tenants(
    (Tenant("a", 2, (SPREAD,)), Tenant("b", 0, (SPREAD,))), (MachineKind("m", 3, 4, 8),)
)


def test_a_job_is_divided_over_as_many_as_it_takes():
    rooms = Rooms(TENANTS)
    parts = rooms.divided(0, SPREAD)
    assert [(room.unit.number, ranks) for room, ranks in parts] == [(0, 4), (1, 2)]
    rooms.take(0, SPREAD, parts)
    # Links of both serve that job, and one machine is left.
    assert rooms.divided(1, SPREAD) is None
    assert [room.ranks for room in rooms.open[0]] == [0, 2]
    assert rooms.packing().machines == 2
    assert len(rooms.fresh(0, 5)) == 1
