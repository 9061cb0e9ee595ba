from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.benchmarks.target import curve

STOCK = {"curve": [(100, 10.0, 3.0), (200, 20.0, 2.0)]}
FAST = {"curve": [(100, 5.0, 3.0), (200, 10.0, 1.9)]}
WORSE = {"curve": [(100, 5.0, 3.0), (200, 10.0, 2.1)]}


def test_time_is_taken_between_evaluations():
    assert curve.seconds_to(STOCK, 2.5) == pytest.approx(15.0)
    assert curve.seconds_to(STOCK, 3.5) == 10.0
    assert curve.seconds_to(STOCK, 1.0) is None


def test_speed_is_that_of_the_way_to_stock_horovods_last_loss():
    arms = {"stock": STOCK, "fast": FAST, "auto": WORSE}
    target = curve.target_of(STOCK)
    assert target == pytest.approx(2.02)
    mine = 5.0 + 5.0 * (3.0 - target) / 1.1
    theirs = 10.0 + 10.0 * (3.0 - target)
    assert curve.speed(arms, "fast") == pytest.approx(theirs / mine)
    assert curve.speed(arms, "stock") == 1.0
    assert curve.speed(arms, "auto") is None
    assert curve.speed_at_most(arms, "auto") == pytest.approx(theirs / 10.0)
    assert curve.speed_at_most(arms, "fast") == curve.speed(arms, "fast")
    assert curve.speed_at_most(arms, "fast", "auto") is None


def test_a_training_that_goes_on_is_compared_where_stock_horovod_ends():
    beyond = {"curve": [*WORSE["curve"], (300, 15.0, 2.0)]}
    arms = {"stock": STOCK, "auto": beyond}
    assert curve.after_as_many_steps(arms, "auto") == (200, 10.0, 2.1)
    assert curve.after_as_many_steps(arms, "stock") == (200, 20.0, 2.0)
    assert curve.speed(arms, "auto") == pytest.approx(19.8 / 14.0)


@given(
    losses=st.lists(st.floats(0.1, 10.0), min_size=1, max_size=20),
    averaged=st.integers(1, 6),
)
def test_a_levelled_loss_is_the_mean_of_those_up_to_it(losses, averaged):
    rows = [(25 * i, 2.0 * i, loss) for i, loss in enumerate(losses, 1)]
    level = curve.levelled({"curve": rows, "options": 1}, averaged)
    assert level["options"] == 1
    window = min(averaged, len(rows))
    assert len(level["curve"]) == len(rows) - window + 1
    for place, (steps, seconds, loss) in enumerate(level["curve"], window - 1):
        assert (steps, seconds) == rows[place][:2]
        assert loss == pytest.approx(statistics.fmean(losses[place - window + 1 : place + 1]))
