"""Answers of `deft_horovod.capacity` on small demands."""

from deft_horovod.capacity.answer.packings import ConsolidationAnswer, ToldPacking
from deft_horovod.capacity.answer.schedules import CapacityAnswer, Told
from deft_horovod.capacity.consolidate.exact import packed
from deft_horovod.capacity.consolidate.tenants import Offer, Tenant, Tenants
from deft_horovod.capacity.problem.machine_kind import MachineKind
from deft_horovod.capacity.schedule.budget import Budget
from deft_horovod.capacity.schedule.exact import solved
from tests.unit.support.capacity.demands import demand, job

SMALL = Budget(2.0)


def capacity_answer(*, stock=True, jobs=4) -> CapacityAnswer:
    """Two jobs on own ranks, two on a rented machine; with stock Horovod they take longer."""

    def told(length_s):
        ways = ((0, 1, 1, length_s), (1, 1, 1, length_s))
        names = ["<b>", "b", "c", "d", "e", "f", "g", "h"][:jobs]
        return Told(solved(demand(*(job(name, 1_500, ways) for name in names)), SMALL))

    return CapacityAnswer("jobs.yaml", told(500), told(900) if stock else None)


def consolidation_answer(*, rented=False) -> ConsolidationAnswer:
    """Two jobs that share a machine with our plans alone."""

    def told(ranks):
        kinds = (MachineKind("lab", 2, 4, 8, 1.5 if rented else None),)
        tenants = tuple(Tenant(name, 1, (Offer(0, ranks, together=True),)) for name in "ab")
        return ToldPacking(packed(Tenants(tenants, kinds), SMALL))

    return ConsolidationAnswer("keep.yaml", told(2), told(3))
