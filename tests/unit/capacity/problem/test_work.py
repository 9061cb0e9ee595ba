"""Jobs as numbers: which ways there are."""

from deft_horovod.capacity.problem.work import Way
from tests.unit.support.capacity.demands import job


def test_ways_on_a_kind_come_with_few_ranks_first():
    work = job(ways=((1, 4, 2, 10), (0, 1, 1, 40), (1, 2, 1, 20)))
    assert [way.ranks for way in work.ways_on(1)] == [2, 4]
    assert work.ways_on(2) == []


def test_several_machines_are_taken_whole():
    assert Way(0, 3, 1, 10).ranks_of_machine(4) == 3
    assert Way(0, 8, 2, 10).ranks_of_machine(4) == 4
