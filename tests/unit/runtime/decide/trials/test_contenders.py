"""Candidates take turns once more where noise hides whether anything gains enough."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.comparison import STOCK
from deft_horovod.runtime.decide.trials.contenders import FEWEST_STEPS, StepTime, contenders

STOCK_WAY = (STOCK, False)
NAMES = ["bucket", "priority", "least_stale"]
steps = st.lists(st.floats(1.0, 1e6), min_size=1, max_size=20)


@given(st.lists(steps, min_size=1, max_size=5))
def test_an_error_is_known_from_enough_steps_on(rounds: list[list[float]]) -> None:
    time = StepTime.of(rounds)
    all_ = [us for one in rounds for us in one]
    assert min(all_) <= time.us <= max(all_)
    assert math.isfinite(time.error_us) == (len(all_) >= FEWEST_STEPS)
    assert time.error_us >= 0.0


@given(st.lists(steps, max_size=3))
def test_rounds_that_a_rank_missed_leave_the_others_as_they_are(rounds: list[list[float]]) -> None:
    assert StepTime.of([*rounds, []]) == StepTime.of(rounds)
    assert StepTime.of([[]]) == StepTime(0.0, math.inf)


def test_steps_that_scatter_more_and_rounds_that_differ_make_it_larger() -> None:
    calm, wild = [100.0, 101.0] * 5, [90.0, 111.0] * 5
    assert StepTime.of([calm]).error_us < StepTime.of([wild]).error_us
    slow = [us + 50.0 for us in calm]
    assert StepTime.of([calm, calm]).error_us < StepTime.of([calm, slow]).error_us


@given(st.floats(100.0, 1e6), st.lists(st.floats(100.0, 1e6), min_size=1, max_size=3))
def test_without_noise_nobody_tries_again(stock_us: float, others: list[float]) -> None:
    times = {STOCK_WAY: StepTime(stock_us, 0.0)}
    times |= {(name, False): StepTime(us, 0.0) for name, us in zip(NAMES, others, strict=False)}
    assert contenders(times, 0.02) == []


def test_those_that_may_be_the_fastest_take_turns_with_stock() -> None:
    times = {
        STOCK_WAY: StepTime(100.0, 5.0),
        ("bucket", False): StepTime(150.0, 5.0),
        ("priority", False): StepTime(99.0, 5.0),
        ("least_stale", False): StepTime(96.0, 5.0),
    }
    assert contenders(times, 0.02) == [STOCK_WAY, ("least_stale", False), ("priority", False)]
    calm = {who: StepTime(time.us, 0.1) for who, time in times.items()}
    assert contenders(calm, 0.02) == []


def test_noise_that_is_not_known_and_no_others_end_the_trials() -> None:
    unknown = {STOCK_WAY: StepTime(100.0, math.inf), ("bucket", False): StepTime(99.0, 1.0)}
    assert contenders(unknown, 0.02) == []
    slow = {STOCK_WAY: StepTime(100.0, 5.0), ("bucket", False): StepTime(200.0, math.inf)}
    assert contenders(slow, 0.02) == []
    near = {**slow, ("priority", False): StepTime(99.0, 5.0)}
    assert contenders(near, 0.02) == [STOCK_WAY, ("priority", False)]
    assert contenders({STOCK_WAY: StepTime(100.0, 5.0)}, 0.02) == []
