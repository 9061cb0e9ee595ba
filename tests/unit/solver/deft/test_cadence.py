import math

from hypothesis import given, settings

from deft_horovod.base.period import LONGEST_PERIOD
from deft_horovod.solver.deft.cadence import cadences, needs_merging
from deft_horovod.solver.problem import Item, Limits, Problem
from tests.unit.solver.deft.test_windows import problems


def updates(problem, cadence):
    return sum(1 / rhythm.every for rhythm in cadence.rhythms) / len(cadence.rhythms)


def alike(count, load, max_merge):
    """Blocks that together take `load` steps of link time."""
    item = Item(0.0, None, 1.0, ((load * 200.0 / count,),))
    return Problem((item,) * count, 70.0, 130.0, 0.0, 1, Limits(1, max_merge), margin=1.0)


@settings(max_examples=60)
@given(problems())
def test_lengths_are_within_the_limits_and_repeat(problem):
    found = list(cadences(problem))
    assert found
    assert found == list(cadences(problem))
    for cadence in found:
        assert cadence.period <= LONGEST_PERIOD
        assert cadence.period == math.lcm(*(rhythm.every for rhythm in cadence.rhythms))
        for rhythm in cadence.rhythms:
            assert 1 <= rhythm.every <= problem.limits.max_merge
            assert 0 <= rhythm.end_step < rhythm.every


def test_everything_travels_in_every_step_where_that_fits():
    assert {rhythm.every for rhythm in next(cadences(alike(10, 0.9, 4))).rhythms} == {1}


def test_only_what_does_not_fit_travels_less_often():
    cadence = next(cadences(alike(100, 1.2, 4)))
    lengths = [rhythm.every for rhythm in cadence.rhythms]
    # 1.2 = x + (1.2 - x) / 2 + 0.2 for a third in every second step.
    assert sorted(set(lengths)) != [1]
    load = sum(1.2 / 100 / every for every in lengths)
    assert 0.97 <= load <= 1.0


def test_end_steps_fill_all_steps_alike():
    problem = alike(40, 2.0, 2)
    cadence = next(cadences(problem))
    ends = [sum(rhythm.ends(step) for rhythm in cadence.rhythms) for step in range(cadence.period)]
    assert ends == [20, 20]


def test_where_nothing_fits_all_is_merged_as_long_as_allowed():
    (cadence,) = cadences(alike(5, 9.0, 3))
    assert {rhythm.every for rhythm in cadence.rhythms} == {3}


def test_merging_is_needed_once_the_links_cannot_carry_every_step():
    assert not needs_merging(alike(5, 0.99, 4))
    assert needs_merging(alike(5, 1.01, 4))
    two = Item(0.0, None, 1.0, ((270.0, 675.0),))
    both = Problem((two,), 70.0, 130.0, 0.0, 2, Limits(1, 4), margin=1.0)
    assert not needs_merging(both)
