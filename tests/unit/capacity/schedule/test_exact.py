"""The optimum: by brute force where that is possible, and never worse than the heuristics."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod.capacity.problem.machine_kind import MachineKind
from deft_horovod.capacity.problem.rules import broken_rules
from deft_horovod.capacity.schedule.budget import Budget
from deft_horovod.capacity.schedule.exact import solved
from deft_horovod.capacity.schedule.first_fit import first_fit
from deft_horovod.capacity.schedule.hybrid import hybrid
from tests.unit.support.capacity.demands import demand, demands, job, least_cost

SMALL = Budget(2.0)


@settings(max_examples=25)
@given(
    lengths_s=st.lists(st.integers(50, 400), min_size=1, max_size=3),
    deadlines_s=st.lists(st.integers(100, 900), min_size=3, max_size=3),
    prices=st.tuples(st.integers(1, 40), st.integers(1, 40)),
)
def test_tiny_demands_are_solved_as_by_brute_force(lengths_s, deadlines_s, prices):
    kinds = (
        MachineKind("own", 1, 1, 4),
        MachineKind("one", 1, 1, 4, prices[0] / 10, 30, 60),
        MachineKind("two", 1, 2, 4, prices[1] / 10, 0, 300),
    )
    works = [
        job(
            str(number),
            deadline_s=deadline_s,
            ways=(
                (0, 1, 1, length_s),
                (1, 1, 1, length_s),
                (2, 1, 1, length_s),
                (2, 2, 1, length_s // 2),
            ),
        )
        for number, (length_s, deadline_s) in enumerate(zip(lengths_s, deadlines_s, strict=False))
    ]
    asked = demand(*works, kinds=kinds)
    found = solved(asked, SMALL)
    assert found.schedule.cost == least_cost(asked)


@settings(max_examples=40)
@given(demands())
def test_no_rule_is_broken_and_it_is_never_worse_than_the_heuristics(asked):
    found = solved(asked, SMALL)
    assert broken_rules(found.schedule) == []
    assert found.schedule.cost <= min(hybrid(asked).cost, first_fit(asked).cost)
    assert (found.bound.missed, found.bound.rent) <= found.schedule.cost
    # No deadline is missed silently: what is not placed is among the missed.
    placed = {one.work for one in found.schedule.placements}
    assert placed | {*found.schedule.missed} == {*range(len(asked.works))}
    assert found.gap is None or 0.0 <= found.gap <= 1.0


def test_the_same_demand_has_the_same_schedule():
    works = [
        job(
            str(n),
            deadline_s=1_000 + 300 * n,
            ways=((0, 1, 1, 700), (1, 1, 1, 600), (1, 2, 1, 350)),
        )
        for n in range(8)
    ]
    asked = demand(*works)
    first, again = solved(asked, SMALL), solved(asked, SMALL)
    assert first.schedule == again.schedule
    assert first.bound == again.bound


@pytest.mark.parametrize(("count", "missed"), [(2, 0), (3, 1)])
def test_own_machines_suffice_or_jobs_are_missed(count, missed):
    own = MachineKind("own", 1, 2, 8)
    works = [job(str(n), deadline_s=1_000, ways=((0, 1, 1, 900),)) for n in range(count)]
    found = solved(demand(*works, kinds=(own,)), SMALL)
    assert (len(found.schedule.missed), found.schedule.rent) == (missed, 0)
    assert found.is_optimal


def test_a_large_demand_is_planned_in_pieces():
    kinds = (MachineKind("own", 4, 2, 8), MachineKind("rented", 60, 2, 8, 1.0, 60, 600))
    works = [
        job(str(n), deadline_s=1_500, ways=((0, 1, 1, 500 + 7 * n), (1, 1, 1, 500 + 7 * n)))
        for n in range(40)
    ]
    asked = demand(*works, kinds=kinds)
    found = solved(asked, SMALL)
    assert broken_rules(found.schedule) == []
    assert found.schedule.cost <= found.start.cost
    assert found.bound.rent > 0


def test_a_job_without_a_way_is_missed():
    found = solved(demand(job(deadline_s=10), replace(job(), name="b")), SMALL)
    assert found.schedule.missed == (0,)
    assert found.bound.missed == 1
