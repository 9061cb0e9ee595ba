from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.solver.least_stale.link_time import MOST_STEPS, STEP_TICKS, make_grid, tick_rate
from deft_horovod.solver.problem import Item, Limits
from tests.unit.support.problems import example, problems


@given(problems(), st.integers(1, 4))
def test_points_make_the_demand_harder_and_never_easier(problem, period):
    grid = make_grid(problem, period)
    rate = tick_rate(problem)
    for index, item in enumerate(problem.items):
        assert grid.releases[grid.release_of[index]] >= item.ready_us * rate
        gate = grid.gate_of[index]
        assert (gate is None) == (item.need_us is None)
        if gate is not None:
            assert grid.gates[gate] <= item.need_us * rate


@given(problems(most_items=60), st.integers(1, 16))
def test_the_size_is_bounded_whatever_the_number_of_items(problem, period):
    grid = make_grid(problem, period)
    assert grid.demand.shape[0] * grid.demand.shape[1] < 4_000_000
    assert grid.demand.shape == (grid.cells + 1, len(grid.capacity))
    assert grid.stalls.shape == (len(grid.capacity), period * (1 + len(grid.gates)))


@given(problems(), st.integers(1, 4))
def test_every_interval_contains_the_stall_at_its_end(problem, period):
    grid = make_grid(problem, period)
    rows = np.arange(len(grid.capacity))
    assert (grid.stalls[rows, grid.stall_at_end] >= 1.0).all()
    assert (grid.demand[-1] == 0.0).all()  # the cell that fills up lies nowhere
    assert (grid.demand[:-1, -1] == 1.0).all()  # the last row is the whole period


def asked_of(grid, item, step, delay, gated=False):
    return {int(row) for row in np.flatnonzero(grid.demand[grid.cell(item, step, delay, gated)])}


def test_what_is_due_later_lies_in_fewer_intervals_and_what_is_ready_later_in_more():
    grid = make_grid(example(limits=Limits(1, 2)), 2)
    for step in (0, 1):
        sync = asked_of(grid, 1, step, 0)
        assert asked_of(grid, 1, step, 0, gated=True) < sync
        assert asked_of(grid, 1, step, 1) < sync
        assert asked_of(grid, 0, step, 0) < sync < asked_of(grid, 2, step, 0)


def test_intervals_last_from_a_release_to_a_deadline():
    # Ready at 20 of 60; the backward ends 40 later, forward takes 40: an interval of 40 percent of
    # a step, and the whole of it.
    problem = example(times=(30.0,))
    grid = make_grid(replace(problem, items=(Item(20.0, None, 1.0, ((30.0,),)),)), 1)
    assert sorted(grid.capacity) == [0.4 * STEP_TICKS, STEP_TICKS]
    halved = make_grid(replace(problem, margin=0.5), 1)
    assert sorted(halved.capacity)[-1] == STEP_TICKS / 2


def test_times_are_rounded_up_and_exposed_time_is_that_of_a_step():
    grid = make_grid(example(), 2)
    assert grid.ticks(1.0) == STEP_TICKS / 100
    assert grid.ticks(1.1e-4) == 2
    assert grid.exposed_us(np.array([STEP_TICKS, STEP_TICKS / 2])) == pytest.approx(75.0)


def test_a_step_without_compute_has_a_scale_too():
    problem = example(forward_us=0.0, backward_us=0.0)
    items = tuple(replace(item, ready_us=0.0, need_us=None) for item in problem.items)
    grid = make_grid(replace(problem, items=items), 1)
    assert grid.ticks(90.0) == MOST_STEPS * STEP_TICKS
    assert sorted(grid.capacity)[0] == 0.0
