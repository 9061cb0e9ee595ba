"""The heuristic of own machines first."""

from hypothesis import given

from deft_horovod.capacity.problem.machine_kind import MachineKind
from deft_horovod.capacity.problem.rules import broken_rules
from deft_horovod.capacity.schedule.hybrid import hybrid
from tests.unit.support.capacity.demands import OWN, demand, demands, job


def test_the_job_closest_to_its_deadline_is_first():
    works = [
        job(name, deadline_s=d, ways=((0, 2, 1, 100),)) for name, d in (("a", 900), ("b", 300))
    ]
    starts = {one.work: one.start_s for one in hybrid(demand(*works)).placements}
    assert starts == {1: 0, 0: 100}


def test_own_machines_are_used_fully_before_anything_is_rented():
    works = [job(str(n), deadline_s=200, ways=((0, 1, 1, 100), (1, 1, 1, 100))) for n in range(5)]
    found = hybrid(demand(*works))
    assert [one.way.kind for one in found.placements].count(0) == 4
    assert len(found.rentals) == 1


def test_the_best_performance_for_its_price_is_rented():
    dear = MachineKind("dear", 2, 4, 8, 8.0)
    good = MachineKind("good", 2, 4, 8, 4.0)
    work = job(ways=((0, 1, 1, 10), (1, 1, 1, 10)))
    assert hybrid(demand(work, kinds=(dear, good))).placements[0].way.kind == 1


def test_the_fewest_ranks_that_are_in_time_are_taken():
    ways = ((0, 1, 1, 1_000), (0, 2, 1, 600))
    for deadline_s, ranks in ((1_000, 1), (999, 2)):
        found = hybrid(demand(job(deadline_s=deadline_s, ways=ways)))
        assert found.placements[0].way.ranks == ranks


def test_a_rented_machine_does_not_idle_longer_than_another_takes_to_start():
    early = job(deadline_s=1_000, ways=((1, 1, 1, 100),))
    late = job(release_s=5_000, ways=((1, 1, 1, 100),))
    assert len(hybrid(demand(early, late)).rentals) == 2


def test_a_job_that_fits_nowhere_is_missed():
    works = [job(deadline_s=150, ways=((0, 2, 1, 100),)) for _ in range(2)]
    assert hybrid(demand(*works, kinds=(OWN,))).missed == (1,)


@given(demands())
def test_its_schedules_keep_the_rules(asked):
    assert broken_rules(hybrid(asked)) == []
