"""Packing by best fit: whole, and never better than the fewest."""

from hypothesis import given, settings

from deft_horovod.capacity.consolidate.best_fit import best_fit
from deft_horovod.capacity.consolidate.packing import broken_packing
from tests.unit.support.capacity.demands import fewest, tenants


@settings(max_examples=40)
@given(tenants(4))
def test_it_keeps_the_rules(asked):
    found = best_fit(asked)
    assert broken_packing(found) == []
    assert found.cost[:2] >= fewest(asked)
