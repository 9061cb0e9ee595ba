"""Demands: machines one by one, and when jobs can begin."""

from deft_horovod.capacity.problem.demand import Unit
from tests.unit.support.capacity.demands import demand, job


def test_machines_have_numbers():
    asked = demand(job())
    assert asked.units(1) == [Unit(1, 0), Unit(1, 1)]
    assert asked.own_ranks == 2


def test_rented_machines_start_up_first():
    late = job(release_s=100)
    asked = demand(job(), late)
    assert [asked.starts_from_s(asked.works[0], kind) for kind in (0, 1)] == [0, 60]
    assert asked.starts_from_s(late, 1) == 100


def test_ways_that_are_too_slow_are_not_possible():
    work = job(deadline_s=1_000, ways=((0, 1, 1, 1_000), (1, 1, 1, 950), (1, 2, 1, 900)))
    assert [(way.kind, way.duration_s) for way in demand(work).possible(work)] == [
        (0, 1_000),
        (1, 900),
    ]


def test_memory_is_scarce_where_ranks_need_more_than_there_is():
    assert not demand(job(memory_bytes=4)).memory_is_scarce(0)
    assert demand(job(memory_bytes=5)).memory_is_scarce(0)
    assert not demand(job(memory_bytes=5)).memory_is_scarce(1)


def test_the_horizon_is_the_last_deadline():
    assert demand(job(deadline_s=5), job(deadline_s=9)).horizon_s == 9
    assert demand().horizon_s == 0
