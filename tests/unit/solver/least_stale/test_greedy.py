import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.solver.least_stale.greedy import choose_greedily, stalls_for
from deft_horovod.solver.least_stale.link_time import make_grid
from deft_horovod.solver.least_stale.options import make_options
from deft_horovod.solver.problem import Item, Limits
from tests.unit.support.problems import example, problems


def chosen(problem, period):
    solution = choose_greedily(make_options(make_grid(problem, period)))
    return solution, [solution.options.choices[option] for option in solution.chosen]


@given(problems(), st.integers(1, 4))
def test_one_option_each_and_every_interval_has_what_is_asked_of_it(problem, period):
    solution, _ = chosen(problem, period)
    options = solution.options
    assert (options.item[solution.chosen] == np.arange(len(problem.items))).all()
    room = options.grid.capacity + options.grid.stalls @ solution.stalls
    assert (options.demand(solution.chosen) <= room + 1e-6).all()
    again, _ = chosen(problem, period)
    assert (again.chosen == solution.chosen).all()


@given(problems(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_stalls_are_enough_and_none_can_be_shorter(problem, period, pick):
    options = make_options(make_grid(problem, period))
    asked = options.demand([pick.choice(options.of(i)) for i in range(len(problem.items))])
    grid = options.grid
    stalls = stalls_for(grid, asked)
    missing = (asked - grid.capacity).max(axis=0)
    assert (grid.stalls @ stalls >= missing - 1e-6).all()
    for stall in np.flatnonzero(stalls > 0.0):
        shorter = stalls.copy()
        shorter[stall] -= 1.0
        assert (grid.stalls @ shorter < missing).any()


def test_what_fits_stays_synchronous():
    solution, choices = chosen(example(times=(10.0, 10.0, 0.0)), 1)
    assert solution.exposed == solution.harm == 0.0
    assert not any(choice.gated or choice.delay for choice in choices)


def test_what_does_not_fit_behind_backward_is_gated():
    # 30 each, ready at 20, 40, 60: the last two cannot both arrive by 60; used at 20, 10 and 0.
    solution, choices = chosen(example(times=(30.0, 10.0, 0.0)), 1)
    assert solution.exposed == 0.0
    assert [choice.gated for choice in choices] == [False, False, False]
    solution, choices = chosen(example(times=(50.0, 1.0, 0.0)), 1)
    assert solution.exposed == 0.0
    assert choices[0].gated


def test_the_last_is_exposed_unless_it_may_come_late():
    solution, _ = chosen(example(times=(1.0, 1.0, 30.0)), 1)
    assert solution.exposed_us == pytest.approx(30.0)
    solution, choices = chosen(example(times=(1.0, 1.0, 30.0), limits=Limits(1, 1)), 1)
    assert solution.exposed == 0.0
    assert [choice.delay for choice in choices] == [0, 0, 1]


def test_sums_of_different_items_end_in_different_steps():
    # Twice as much as a step can carry, released late: half of it in each of two steps.
    items = tuple(Item(50.0, None, 1.0, ((25.0,),)) for _ in range(8))
    solution, choices = chosen(example(items=items, limits=Limits(1, 2)), 2)
    assert solution.exposed == 0.0
    assert {choice.merged for choice in choices} == {2}
    assert sorted(choice.end_step for choice in choices) == [0] * 4 + [1] * 4


def test_links_share_the_load():
    solution, choices = chosen(example(times=(30.0,) * 3, links=2), 1)
    assert {choice.links for choice in choices} == {(0,), (1,)}
    assert solution.exposed_us == pytest.approx(30.0)


def test_nothing_to_choose_is_solved():
    solution, choices = chosen(example(items=()), 1)
    assert (solution.exposed, choices, solution.status) == (0.0, [], "optimal")
