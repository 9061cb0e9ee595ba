"""What late updates cost: the formula's invariants, and the numbers of its page."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.plan import Staleness
from deft_horovod.preserver.cost import (
    Gradients,
    Lateness,
    affordable_share,
    affordable_turn,
    cost,
    lateness,
)

CORRECTIONS = ("local", "own_and_previous", "none", "momentum")
kinds = st.lists(
    st.builds(
        Staleness,
        delay=st.integers(0, 4),
        merged=st.integers(1, 8),
        bytes=st.integers(0, 10**9),
    ),
    max_size=6,
)


@pytest.mark.parametrize("ranks", [2, 4, 16])
@pytest.mark.parametrize("turned", [0.1, 1.0, 3.0])
def test_the_turn_is_found_again_under_noise(ranks, turned):
    random = np.random.default_rng(1)
    size, deviation = 200_000, 3.0
    own, average, change, before = 0.0, 0.0, 0.0, None
    truth = random.normal(size=size)
    for _ in range(20):
        # A walk in which every step changes the gradient by the same share, size kept.
        truth = truth + math.sqrt(turned) * random.normal(size=size)
        truth *= math.sqrt(size) / np.linalg.norm(truth)
        of_ranks = truth + deviation * random.normal(size=(ranks, size))
        mean = of_ranks.mean(0)
        if before is not None:
            own += (of_ranks[0] ** 2).sum()
            average += (mean**2).sum()
            change += ((mean - before[0]) ** 2).sum()
        before = (mean,)
    found = Gradients(own / 19, average / 19, change / 19, ranks, 19)
    assert found.noise == pytest.approx(deviation**2 / ranks * size, rel=0.05)
    # The distance of two neighbours on the sphere on which the walk is kept.
    expected = 2.0 - 2.0 / math.sqrt(1.0 + turned)
    assert found.turn == pytest.approx(expected, rel=0.15, abs=0.05)


def test_the_example_of_the_documentation():
    seen = Gradients(own_square=10.0, average_square=4.0, change_square=6.0, ranks=4, steps=87)
    assert seen.noise == 2.0
    assert seen.turn == 1.0
    kinds = [Staleness(delay=1, merged=1, bytes=40), Staleness(delay=0, merged=1, bytes=60)]
    late = lateness(kinds)
    assert late == Lateness(delayed=0.4, merged=0.0)
    assert cost(late, seen.turn, "local") == pytest.approx(0.0048)
    assert cost(late, seen.turn, "none") == pytest.approx(0.048)
    assert affordable_share(0.02, seen.turn, "local") == pytest.approx(0.816, abs=0.001)
    assert affordable_turn(0.02, late, "local") == pytest.approx(2.04, abs=0.01)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 1000))
def test_whatever_is_measured_the_turn_is_a_finite_share(own, average, change, ranks):
    turn = Gradients(own, average, change, ranks, 20).turn
    assert turn >= 0.0
    assert math.isfinite(turn)


def test_gradients_that_are_nothing_but_zero_do_not_turn():
    assert Gradients(0.0, 0.0, 0.0, 4, 20).turn == 0.0


@given(kinds, st.integers(0, 5), st.integers(1, 5), st.sampled_from(CORRECTIONS))
def test_the_later_the_more_it_costs(some, turn, more, correction):
    later = [kind.model_copy(update={"delay": kind.delay + more}) for kind in some]
    sums = [kind.model_copy(update={"merged": kind.merged + more}) for kind in some]
    price = cost(lateness(some), turn, correction)
    assert price <= cost(lateness(later), turn, correction)
    assert price <= cost(lateness(sums), turn, correction) + 1e-12
    exact = lateness([kind.model_copy(update={"delay": 0, "merged": 1}) for kind in some])
    assert not exact.any
    assert cost(exact, turn, correction) == 0.0


@given(
    st.floats(1e-4, 10),
    st.floats(1e-3, 10),
    st.sampled_from(CORRECTIONS),
    st.integers(0, 3),
    st.integers(1, 5),
)
def test_what_is_affordable_spends_the_budget(budget, turn, correction, delay, merged):
    share = affordable_share(budget, turn, correction, delay, merged)
    if share == math.inf:
        assert (delay, merged) == (0, 1)
        return
    late = Lateness(share * math.sqrt(delay), share * (1.0 - 1.0 / merged))
    assert cost(late, turn, correction) == pytest.approx(budget)
    if delay:
        assert affordable_turn(budget, late, correction) == pytest.approx(turn, rel=1e-3)


@given(kinds, st.floats(0, 1), st.sampled_from(CORRECTIONS))
def test_up_to_the_affordable_turn_the_budget_holds_and_not_beyond(some, budget, correction):
    late = lateness(some)
    limit = affordable_turn(budget, late, correction)
    if limit > 1e6:
        assert cost(late, 1.0, correction) <= budget
        return
    if limit > 0.0:
        assert cost(late, limit, correction) <= budget * (1 + 1e-6)
    assert cost(late, limit * 1.01 + 1e-3, correction) >= budget * (1 - 1e-6)


def test_gradients_that_stand_still_can_be_as_late_as_one_likes():
    assert affordable_share(0.02, 0.0, "none") == math.inf


def test_a_correction_that_was_not_measured_counts_as_none():
    late = Lateness(delayed=0.5, merged=0.2)
    assert cost(late, 1.0, "momentum") == cost(late, 1.0, "none")
    assert cost(late, 1.0, "local") < cost(late, 1.0, "own_and_previous") < cost(late, 1.0, "none")
