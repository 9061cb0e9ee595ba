"""First fit decreasing."""

from hypothesis import given

from deft_horovod.capacity.problem.rules import broken_rules
from deft_horovod.capacity.schedule.first_fit import first_fit
from tests.unit.support.capacity.demands import demand, demands, job


def test_the_longest_job_is_first_and_the_listed_order_counts():
    works = [
        job(ways=((0, 2, 1, length), (1, 2, 1, length)), deadline_s=400) for length in (200, 300)
    ]
    placed = {one.work: (one.way.kind, one.start_s) for one in first_fit(demand(*works)).placements}
    assert placed == {1: (0, 0), 0: (1, 60)}


@given(demands())
def test_its_schedules_keep_the_rules(asked):
    assert broken_rules(first_fit(asked)) == []
