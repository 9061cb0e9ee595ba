"""Calendars: when a machine is free."""

from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.schedule import Placement
from deft_horovod.capacity.problem.work import Way
from deft_horovod.capacity.schedule.calendar import Calendar, together_s
from tests.unit.support.capacity.demands import demand, job

ONE, BOTH = Way(0, 1, 1, 100), Way(0, 2, 1, 50)


def filled(asked, *placed):
    calendar = Calendar(asked, Unit(0, 0))
    for work, way, start_s in placed:
        calendar.take(Placement(work, way, (calendar.unit,), start_s))
    return calendar


def test_ranks_are_free_one_by_one():
    asked = demand(job(ways=((0, 1, 1, 100), (0, 2, 1, 50))))
    calendar = filled(asked, (0, ONE, 10))
    assert (calendar.free_s, calendar.end_s) == (0, 110)
    assert calendar.start_s(asked.works[0], ONE) == 0
    assert calendar.start_s(asked.works[0], BOTH) == 110


def test_a_job_takes_ranks_that_were_free_last():
    asked = demand(job())
    calendar = filled(asked, (0, ONE, 0), (0, ONE, 100))
    assert (calendar.free_s, calendar.end_s) == (0, 200)


def test_memory_is_waited_for():
    asked = demand(job(memory_bytes=5), job(memory_bytes=3))
    calendar = filled(asked, (0, ONE, 0))
    assert calendar.start_s(asked.works[0], ONE) == 100
    assert calendar.start_s(asked.works[1], ONE) == 0


def test_on_several_machines_the_last_one_counts():
    asked = demand(job(release_s=20), job())
    busy, free = filled(asked, (1, BOTH, 0)), Calendar(asked, Unit(0, 0))
    assert together_s([busy, free], asked.works[0], BOTH) == 50
    assert together_s([free], asked.works[0], BOTH) == 20
