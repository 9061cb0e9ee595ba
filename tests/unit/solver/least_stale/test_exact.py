import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod.solver.least_stale.exact import EXPOSED_TOLERANCE, _hardest_rows, improve
from deft_horovod.solver.least_stale.greedy import choose_greedily
from deft_horovod.solver.least_stale.link_time import make_grid, tick_rate
from deft_horovod.solver.least_stale.options import make_options
from deft_horovod.solver.problem import Item, Limits, Problem
from tests.unit.support import reference_solver
from tests.unit.support.problems import encoded, problems


@st.composite
def tiny_problems(draw, most_items=3, max_merge=2):
    """Times are whole, so that little is lost to rounding."""
    forward, backward, optimizer = (draw(st.integers(0, 40)) for _ in range(3))
    backward += 1
    items = tuple(
        Item(
            ready_us=float(draw(st.integers(0, backward))),
            need_us=draw(st.one_of(st.none(), st.integers(0, forward).map(float))),
            weight=float(draw(st.integers(1, 9))),
            times_us=((time,),),
            encoded_us=encoded(draw(st.sampled_from([(), ("int8",)])), (time,)),
        )
        for time in draw(st.lists(st.integers(1, 50).map(float), min_size=1, max_size=most_items))
    )
    limits = Limits(draw(st.integers(0, 3)), draw(st.integers(1, max_merge)))
    return Problem(items, float(forward), float(backward), float(optimizer), 1, limits)


def solved(problem, period):
    options = make_options(make_grid(problem, period))
    start = choose_greedily(options)
    return start, improve(options, start)


@settings(max_examples=60)
@given(tiny_problems(), st.integers(1, 2))
def test_tiny_problems_are_solved_to_the_optimum(problem, period):
    start, best = solved(problem, period)
    rate = tick_rate(problem)
    ticks = best.options.grid
    tolerance = EXPOSED_TOLERANCE * problem.margin * period * problem.step_us
    # Each duration is rounded up and each capacity down, by less than a tick; stalls sum them up.
    slack = 40 * (len(problem.items) + 2) * period / rate
    # The reference stretches messages where the solver shrinks intervals.
    least, all_ways, _ = reference_solver.optimum(problem, period, tolerance)
    exposed = best.exposed / rate
    least *= problem.margin
    assert exposed >= least - slack
    assert exposed <= max(least, tolerance) + slack
    least_harm = [
        min(harm for stall, harm in all_ways if stall * problem.margin <= limit)
        for limit in (max(least, tolerance) + slack, max(least, tolerance) - slack)
        if any(stall * problem.margin <= limit for stall, _ in all_ways)
    ]
    assert best.status == "optimal"
    assert best.harm >= least_harm[0] - 1e-3
    if len(least_harm) > 1:
        assert best.harm <= least_harm[1] + 1e-3
    assert best.key()[:1] <= start.key()[:1] or exposed <= tolerance + slack
    assert ticks.period == period


@given(problems(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_what_keeps_to_the_hardest_rows_keeps_to_all(problem, period, pick):
    grid = make_grid(problem, period)
    used = sorted(pick.sample(range(grid.cells), pick.randint(1, grid.cells)))
    rows = _hardest_rows(grid, used)
    demand = grid.demand[used].T  # [row, cell]
    asked = np.array([pick.choice([0.0, 1.0, 7.0]) for _ in used])
    rest = grid.capacity + grid.stalls @ [pick.choice([0, 9000]) for _ in grid.stalls[0]]
    full = [rest[row] / (demand[row] @ asked) for row in rows if demand[row] @ asked > 0.0]
    most = asked * min(full, default=0.0)
    assert (demand @ most <= rest + 1e-6 * (1.0 + rest)).all()
    assert len(rows) == len(set(rows)) <= len(grid.capacity)
