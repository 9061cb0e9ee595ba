from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.wire_format import EXACT
from deft_horovod.solver.least_stale.link_time import make_grid
from deft_horovod.solver.least_stale.options import make_options
from deft_horovod.solver.problem import Item, Limits
from tests.unit.support.problems import example, problems


def options_of(problem, period):
    return make_options(make_grid(problem, period))


@given(problems(), st.integers(1, 4))
def test_every_item_has_options_and_all_keep_to_the_limits(problem, period):
    options = options_of(problem, period)
    for index, item in enumerate(problem.items):
        mine = [options.choices[option] for option in options.of(index)]
        assert len(set(mine)) == len(mine) > 0
        for choice in mine:
            assert period % choice.merged == 0
            assert choice.merged <= problem.limits.max_merge
            assert choice.end_step < choice.merged
            assert choice.delay <= problem.limits.max_delay
            assert not choice.gated or item.need_us is not None
            assert len(choice.links) == len(item.times_us)
            # Out of the way when the next cycle's first messages are due.
            assert choice.last_steps(period)[-1] + choice.delay <= period
        assert any(c.merged == 1 and not c.delay and not c.gated for c in mine)


@given(problems(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_whole_period_is_asked_for_all_generations(problem, period, pick):
    options = options_of(problem, period)
    chosen = [pick.choice(options.of(index)) for index in range(len(problem.items))]
    total = options.demand(chosen)[:, -1]
    for link in range(problem.links):
        expected = sum(
            len(options.choices[option].last_steps(period)) * options.load[option, link]
            for option in chosen
        )
        assert total[link] == expected
    rows = options.rows(np.array(chosen))
    assert (options.load[chosen].T @ rows == options.demand(chosen)).all()


def test_what_the_limits_allow_is_there():
    found = {
        (c.merged, c.end_step, c.delay, c.gated)
        for c in options_of(example(limits=Limits(2, 2)), 2).choices
    }
    assert found == {
        *((1, 0, delay, False) for delay in (0, 1)),
        *((2, 0, delay, False) for delay in (0, 1, 2)),
        *((2, 1, delay, False) for delay in (0, 1)),
        *((merged, end_step, 0, True) for merged, end_step in ((1, 0), (2, 0), (2, 1))),
    }


def test_many_items_have_fewer_options_but_no_item_goes_without_sums():
    items = tuple(Item(60.0, 0.0, 1.0, ((1.0,),)) for _ in range(900))
    options = options_of(example(items=items, limits=Limits(8, 8)), 8)
    assert len(options.choices) <= 15_000
    assert {options.choices[option].merged for option in options.of(0)} == {1, 2, 4, 8}


def test_buckets_are_shared_between_links_in_proportion():
    item = Item(60.0, 0.0, 1.0, ((1.0, 2.5),) * 7)
    splits = {
        tuple(sorted(Counter(choice.links).items()))
        for choice in options_of(example(items=(item,), links=2), 1).choices
    }
    assert {((0, 7),), ((1, 7),), ((0, 5), (1, 2))} <= splits
    three = Item(60.0, 0.0, 1.0, ((1.0, 1.0, 1.0),) * 6)
    splits = {c.links for c in options_of(example(items=(three,), links=3), 1).choices}
    assert (0, 0, 1, 1, 2, 2) in splits


@given(problems(), st.integers(1, 4))
def test_only_what_is_in_time_and_whole_is_encoded(problem, period):
    options = options_of(problem, period)
    for index, item in enumerate(problem.items):
        mine = [options.choices[option] for option in options.of(index)]
        for choice in mine:
            assert choice.format == EXACT or (
                choice.format in item.formats and not choice.staleness
            )
        assert {choice.format for choice in mine} == {EXACT, *item.formats}
