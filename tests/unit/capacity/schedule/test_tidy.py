"""Tidying: earlier, and never dearer."""

from hypothesis import given

from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.rules import broken_rules
from deft_horovod.capacity.problem.schedule import Placement, Schedule
from deft_horovod.capacity.schedule.first_fit import first_fit
from deft_horovod.capacity.schedule.tidy import tidied
from tests.unit.support.capacity.demands import demand, demands, job


def test_jobs_begin_as_early_as_they_can():
    works = [job(name, ways=((0, 2, 1, 100),)) for name in "ab"]
    late = [Placement(n, works[n].ways[0], (Unit(0, 0),), 500 * (2 - n)) for n in range(2)]
    found = tidied(Schedule(demand(*works), tuple(late)))
    assert [(one.work, one.start_s) for one in found.placements] == [(0, 100), (1, 0)]


def test_machines_are_numbered_by_first_use():
    work = job(ways=((1, 1, 1, 100),))
    found = tidied(Schedule(demand(work), (Placement(0, work.ways[0], (Unit(1, 1),), 60),)))
    assert found.placements[0].units == (Unit(1, 0),)


@given(demands(8))
def test_it_is_never_dearer(asked):
    before = first_fit(asked)
    after = tidied(before)
    assert broken_rules(after) == []
    assert after.cost <= before.cost
    ends = {one.work: one.end_s for one in before.placements}
    assert all(one.end_s <= ends[one.work] for one in after.placements)
