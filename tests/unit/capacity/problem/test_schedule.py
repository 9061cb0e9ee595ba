"""Schedules: rent, use, what is missed."""

import pytest

from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.schedule import Placement, Schedule
from tests.unit.support.capacity.demands import demand, job

WAYS = ((0, 1, 1, 1_000), (1, 1, 1, 900), (1, 2, 1, 500))


def planned() -> Schedule:
    works = [job(name, ways=WAYS) for name in "abcd"]
    asked = demand(*works)
    own, one, two = works[0].ways
    return Schedule(
        asked,
        (
            Placement(0, own, (Unit(0, 0),), 0),
            Placement(1, one, (Unit(1, 1),), 100),
            Placement(2, two, (Unit(1, 1),), 1_000),
        ),
    )


def test_a_machine_is_paid_from_its_start_up_to_its_last_job():
    (rental,) = planned().rentals
    assert (rental.unit, rental.from_s, rental.to_s) == (Unit(1, 1), 40, 1_500)
    # 1,460 s are three units of 600 s, each 3.6 / 6.
    assert rental.rent == planned().rent == pytest.approx(1.8)


def test_what_is_not_placed_is_missed():
    assert planned().missed == (3,)
    assert planned().cost == (1, planned().rent)


def test_use_is_that_of_ranks():
    assert planned().own_use() == 1_000 / (2 * 10_000)
    assert planned().paid_use() == (900 + 2 * 500) / (1_800 * 2)
    assert planned().end_s == 1_500


def test_nothing_placed_costs_nothing():
    nothing = Schedule(demand(job()), ())
    assert (nothing.rent, nothing.end_s, nothing.own_use(), nothing.paid_use()) == (0, 0, 0.0, 0.0)
