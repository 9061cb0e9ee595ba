"""The bound: nothing is below it."""

from fractions import Fraction

from hypothesis import given, settings

from deft_horovod.capacity.schedule.budget import Budget
from deft_horovod.capacity.schedule.exact import solved
from deft_horovod.capacity.schedule.relaxation import bound
from tests.unit.support.capacity.demands import OWN, demand, demands, job

SMALL = Budget(1.0)


def test_work_that_own_machines_cannot_do_is_paid():
    works = [job(deadline_s=1_000, ways=((0, 1, 1, 900), (1, 1, 1, 900))) for _ in range(4)]
    # Two on own ranks; the others share a rented machine: 60 + 900 s are two units of 600 s.
    assert bound(demand(*works), SMALL, 0).rent == Fraction(6, 5)


def test_jobs_that_nothing_can_do_are_missed():
    works = [job(deadline_s=1_000, ways=((0, 1, 1, 900),)) for _ in range(3)]
    assert bound(demand(*works, kinds=(OWN,)), SMALL, 3).missed == 1


@settings(max_examples=30)
@given(demands(4))
def test_no_schedule_is_below_it(asked):
    found = solved(asked, Budget(2.0)).schedule
    lower = bound(asked, SMALL, len(found.missed))
    assert (lower.missed, lower.rent) <= found.cost
