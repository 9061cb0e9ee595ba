"""The fewest machines, as by trying everything."""

from hypothesis import given, settings

from deft_horovod.capacity.consolidate.best_fit import best_fit
from deft_horovod.capacity.consolidate.exact import packed
from deft_horovod.capacity.consolidate.first_fit import first_fit_packing
from deft_horovod.capacity.consolidate.packing import broken_packing
from deft_horovod.capacity.schedule.budget import Budget
from tests.unit.support.capacity.demands import fewest, tenants


@settings(max_examples=40)
@given(tenants(4))
def test_small_ones_are_solved_as_by_brute_force(asked):
    found = packed(asked, Budget(2.0))
    assert broken_packing(found.packing) == []
    assert found.packing.cost[:2] == fewest(asked)
    assert found.packing.cost <= min(best_fit(asked).cost, first_fit_packing(asked).cost)
    assert found.bound == found.packing.machines
    assert found.gap == 0.0


@settings(max_examples=20)
@given(tenants(8))
def test_ready_machines_never_need_fewer(asked):
    whole, ready = packed(asked, Budget(2.0)).packing, packed(asked.ready(), Budget(2.0)).packing
    assert whole.cost <= ready.cost
