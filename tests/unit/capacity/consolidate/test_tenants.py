"""Tenants: what takes least of a machine."""

from deft_horovod.capacity.consolidate.tenants import Offer, Tenant, Tenants
from deft_horovod.capacity.problem.machine_kind import MachineKind

KINDS = (MachineKind("small", 2, 4, 8), MachineKind("large", 2, 8, 64))
FEW, MANY = Offer(0, 2, together=True), Offer(1, 3, together=True)


def test_memory_counts_where_it_is_more():
    hungry = Tenant("a", 4, (FEW, MANY))
    all_ = Tenants((hungry,), KINDS)
    assert all_.share(hungry, FEW) == 1.0
    assert all_.share(hungry, MANY) == 3 / 8
    assert all_.least(hungry) == MANY
    assert (all_.room(hungry, 0), all_.room(hungry, 1)) == (2, 8)


def test_ready_tenants_have_one_offer():
    modest = Tenant("a", 0, (FEW, MANY))
    all_ = Tenants((modest, Tenant("b", 0, ())), KINDS)
    assert [one.offers for one in all_.ready().tenants] == [(MANY,), ()]
    assert all_.decreasing() == [0, 1]
