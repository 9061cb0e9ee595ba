"""Rules: every mistake of a schedule is found."""

from dataclasses import replace

import pytest

from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.rules import broken_rules, require_rules
from deft_horovod.capacity.problem.schedule import Placement, Schedule
from deft_horovod.capacity.problem.work import Way
from deft_horovod.errors import PlanError
from tests.unit.support.capacity.demands import demand, job

WORK = job("a", deadline_s=1_200, ways=((0, 2, 1, 1_000), (1, 4, 2, 400)), memory_bytes=2)
ASKED = demand(WORK, replace(WORK, name="b"))
GOOD = Placement(0, WORK.ways[0], (Unit(0, 0),), 100)
WIDE = Placement(1, WORK.ways[1], (Unit(1, 0), Unit(1, 1)), 60)


def broken(*placements: Placement) -> str:
    return "; ".join(broken_rules(Schedule(ASKED, placements)))


def test_a_good_one_is_kept():
    good = Schedule(ASKED, (GOOD, WIDE))
    assert require_rules(good) is good


@pytest.mark.parametrize(
    ("placement", "said"),
    [
        (replace(GOOD, start_s=201), "ends after its deadline"),
        (replace(WIDE, start_s=59), "begins too early"),
        (replace(GOOD, way=Way(0, 1, 1, 5)), "cannot be done in this way"),
        (replace(WIDE, units=(Unit(1, 0),)), "wrong machines"),
        (replace(WIDE, units=(Unit(1, 0), Unit(1, 0))), "wrong machines"),
        (replace(WIDE, units=(Unit(1, 1), Unit(1, 2))), "wrong machines"),
    ],
)
def test_a_wrong_placement_is_found(placement, said):
    assert said in broken(placement)


def test_jobs_are_not_in_two_places_or_on_top_of_each_other():
    assert "is placed 2 times" in broken(GOOD, GOOD)
    both = broken(GOOD, replace(GOOD, work=1, start_s=0))
    assert "own 0 has 4 ranks at 100 s" in both


def test_memory_counts():
    hungry = replace(WORK, memory_bytes=5)
    schedule = Schedule(demand(hungry), (GOOD,))
    with pytest.raises(PlanError, match="too little memory"):
        require_rules(schedule)
