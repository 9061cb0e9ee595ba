"""Lanes: jobs on a machine lie beside each other, never above."""

from itertools import combinations

from hypothesis import given

from deft_horovod.capacity.answer.lanes import lanes
from deft_horovod.capacity.schedule.hybrid import hybrid
from tests.unit.support.capacity.demands import demands


@given(demands(8))
def test_no_two_share_a_lane_at_a_time(asked):
    schedule = hybrid(asked)
    for unit, placements in schedule.by_unit.items():
        ranks = asked.kinds[unit.kind].ranks
        found = lanes(schedule, unit)
        total = sum(one.way.ranks_of_machine(ranks) for one in placements)
        assert sum(count for *_, count in found) == total
        for (_, from_s, to_s, first, count), (
            _,
            from_2_s,
            to_2_s,
            first_2,
            count_2,
        ) in combinations(found, 2):
            apart = to_s <= from_2_s or to_2_s <= from_s
            assert apart or first + count <= first_2 or first_2 + count_2 <= first
