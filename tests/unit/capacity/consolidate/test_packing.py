"""Packings: every mistake is found."""

import pytest

from deft_horovod.capacity.consolidate.packing import (
    Lodging,
    Packing,
    broken_packing,
    require_packing,
)
from deft_horovod.capacity.consolidate.tenants import Offer, Tenant, Tenants
from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.machine_kind import MachineKind
from deft_horovod.errors import PlanError

TOGETHER, SPREAD = Offer(0, 3, together=True), Offer(0, 4, together=False)
TENANTS = Tenants(
    tuple(Tenant(name, 2, (TOGETHER, SPREAD)) for name in "ab"),
    (MachineKind("small", 3, 4, 8, 1.5),),
)
A, B, C = (Unit(0, number) for number in range(3))


def packing(*lodgings):
    return Packing(TENANTS, lodgings)


def test_what_is_used_is_counted():
    found = packing(Lodging(0, SPREAD, ((A, 3), (B, 1))), Lodging(1, TOGETHER, ((B, 3),)))
    assert require_packing(found) is found
    assert found.by_unit == {A: ((0, 3),), B: ((0, 1), (1, 3))}
    assert found.cost == (0, 2, 30_000)
    assert packing().without_room == (0, 1)


@pytest.mark.parametrize(
    ("lodgings", "said"),
    [
        ([Lodging(0, TOGETHER, ((A, 2), (B, 1)))], "divided wrongly"),
        ([Lodging(0, TOGETHER, ((A, 2),))], "wrong number of ranks"),
        ([Lodging(0, TOGETHER, ((Unit(0, 3), 3),))], "wrong machines"),
        ([Lodging(0, Offer(0, 2, together=True), ((A, 2),))], "not fast enough"),
        ([Lodging(n, TOGETHER, ((A, 3),)) for n in range(2)], "too few ranks"),
        ([Lodging(n, SPREAD, ((A, 2), (B, 2))) for n in range(2)], "serves several"),
    ],
)
def test_a_wrong_one_is_found(lodgings, said):
    assert said in "; ".join(broken_packing(packing(*lodgings)))
    with pytest.raises(PlanError, match="a packing breaks its rules"):
        require_packing(packing(*lodgings))
