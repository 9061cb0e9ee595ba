import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.preserver.cost import Lateness, cost
from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.preserver import (
    BEGINNING,
    auto,
    constants,
    late_share,
    lateness_of,
    rank_correlation,
    trials,
    turn_of,
)
from scripts.studies.convergence.training import Run

WORKERS = 4
SYNCHRONOUS = Arm()
ALL, HALF = Arm(-1, 1, 1, "local"), Arm(2, 1, 1, "local")
UNCORRECTED = Arm(-1, 1, 1, "none")


def outcome(loss, turn=1.0, accuracy=0.9):
    """Without noise: own and averaged gradients are the same."""
    squares = {"own_square": 2.0, "average_square": 2.0, "change_square": 2.0 * turn}
    statistics = {name: [value] * 10 for name, value in squares.items()}
    return {"loss": loss, "accuracy": accuracy, "statistics": statistics}


def outcomes(losses, turn=1.0, task="mlp"):
    """Of {arm: losses by seed}."""
    return [
        (Run(task, "sgd", 0.1, arm, seed), outcome(loss, turn))
        for arm, of_seeds in losses.items()
        for seed, loss in enumerate(of_seeds, 1)
    ]


def test_the_turn_is_that_of_the_tenths_asked_for():
    seen = outcome(1.0, turn=0.7)
    seen["statistics"]["change_square"][2:] = [6.0] * 8
    assert turn_of(seen, WORKERS, *BEGINNING) == pytest.approx(0.7)
    assert turn_of(seen, WORKERS, 3, 4) == pytest.approx(3.0)


@pytest.mark.parametrize("task", ["transformer", "cnn", "mlp"])
def test_of_more_parts_more_is_late(task):
    shares = [late_share(task, parts) for parts in (0, 1, 2, -1)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert lateness_of(task, ALL) == Lateness(delayed=1.0)
    assert lateness_of(task, HALF).delayed == pytest.approx(shares[2], abs=1e-5)
    assert lateness_of(task, SYNCHRONOUS) == Lateness()


def test_what_is_expected_stands_beside_what_was_measured():
    (trial,) = trials(outcomes({SYNCHRONOUS: [1.0, 2.0], ALL: [1.1, 2.2]}, turn=0.5))
    assert trial.loss == pytest.approx(math.log(1.1))
    assert trial.expected == pytest.approx(cost(Lateness(delayed=1.0), 0.5, "local"))
    assert trial.loses


def test_where_synchronous_training_fails_nothing_is_compared():
    assert not trials(outcomes({SYNCHRONOUS: [1.0, math.inf], ALL: [1.0, 1.0]}))
    assert not auto(outcomes({SYNCHRONOUS: [1.0, math.inf], ALL: [1.0, 1.0]}))


def test_arms_that_diverge_count_as_very_bad():
    (trial,) = trials(outcomes({SYNCHRONOUS: [1.0, 1.0], UNCORRECTED: [math.inf, math.inf]}))
    assert math.isfinite(trial.loss)
    assert trial.loss > 5.0


def test_constants_are_what_delay_costs_at_a_turn_of_one():
    found = trials(outcomes({SYNCHRONOUS: [1.0] * 3, ALL: [math.exp(0.08)] * 3}, turn=2.0))
    assert constants(found)["local"] == pytest.approx(0.02)
    assert math.isnan(constants(found)["none"])


@given(st.lists(st.integers(-1000, 1000), min_size=3, max_size=30, unique=True))
def test_rank_correlation_sees_order_alone(values):
    assert rank_correlation(values, [v**3 for v in values]) == pytest.approx(1.0)
    assert rank_correlation(values, [-v for v in values]) == pytest.approx(-1.0)


def test_rank_correlation_knows_equal_values():
    assert rank_correlation([1.0, 1.0, 2.0], [3.0, 3.0, 4.0]) == pytest.approx(1.0)
    assert math.isnan(rank_correlation([1.0, 2.0], [1.0, 2.0]))


@pytest.mark.parametrize(
    ("turn", "chosen", "loss"),
    [(0.1, "all late", 3.0), (1.3, "half late", 2.0), (9.0, "synchronous", 1.0)],
)
def test_auto_is_as_late_as_the_budget_allows(turn, chosen, loss):
    losses = {SYNCHRONOUS: [1.0, 1.0], HALF: [2.0, 2.0], ALL: [3.0, 3.0]}
    ((_, exact, mine, said),) = auto(outcomes(losses, turn))
    assert dict(said) == {chosen: 2}
    assert (exact.mean, mine.mean) == (1.0, loss)


def test_auto_takes_what_was_trained():
    ((_, _, mine, said),) = auto(outcomes({SYNCHRONOUS: [1.0, 1.0], HALF: [2.0]}, 0.1))
    assert dict(said) == {"half late": 1, "synchronous": 1}
    assert mine.losses == {1: 2.0, 2: 1.0}


def test_arms_that_wait_for_a_low_rate_are_not_judged_by_the_beginning():
    waits = Arm(-1, 1, 1, "local", below=0.5)
    assert trials(outcomes({SYNCHRONOUS: [1.0, 2.0], waits: [1.1, 2.2]})) == []
