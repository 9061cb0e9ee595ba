"""Neighbourhoods: whole, and the same again."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.capacity.schedule.hybrid import hybrid
from deft_horovod.capacity.schedule.neighbourhood import drawn
from tests.unit.support.capacity.demands import demands


@given(demands(12), st.integers(0, 1_000))
def test_what_is_free_was_on_machines_that_are_looked_at(asked, seed):
    schedule = hybrid(asked)
    found = drawn(schedule, Random(seed))
    fixed = {one.work for one in found.fixed}
    for one in schedule.placements:
        assert one.work in fixed or set(one.units) <= set(found.units)
    assert len(found.units) == len(set(found.units))
    assert drawn(schedule, Random(seed)) == found
