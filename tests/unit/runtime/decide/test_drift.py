"""Drift is noticed when it lasts, and only then."""

from types import SimpleNamespace

import horovod.torch as stock
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.decide.drift import Drift
from deft_horovod.runtime.decide.measuring_debt import MeasuringDebt
from deft_horovod.runtime.follower import Wish
from tests.unit.support.boundaries import boundary


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


def reducer(*totals):
    """Links whose counters grow as given: (busy microseconds, bytes), one pair a question."""
    left = list(totals)
    return SimpleNamespace(sent=lambda: [SimpleNamespace(**left.pop(0))])


def drifts(drift, step_us, planned):
    wish = drift.end_boundary(boundary(step_us=step_us, planned=planned))
    return wish is Wish.MEASURE_AGAIN


@given(st.floats(1.0, 1e6), st.floats(0.01, 1.0), st.integers(1, 6))
def test_steps_that_stay_as_they_are_are_no_drift(step_us, share, steps):
    drift = Drift(share, steps, MeasuringDebt())
    assert not any(drifts(drift, step_us, None) for _ in range(5 * steps))


@given(st.floats(1.0, 1e6), st.floats(0.01, 1.0), st.integers(1, 6), st.booleans())
def test_a_lasting_change_is_noticed_once_a_run_is_over(step_us, share, steps, slower):
    drift = Drift(share, steps, MeasuringDebt())
    for _ in range(steps):
        assert not drifts(drift, step_us, None)
    changed = step_us * (1 + 2 * share) if slower else step_us / (1 + 2 * share)
    outcomes = [drifts(drift, changed, None) for _ in range(steps)]
    assert outcomes == [False] * (steps - 1) + [True]
    assert "step time" in drift.reason
    drift.restart()
    assert not drift.reason


def test_one_slow_step_is_no_drift():
    drift = Drift(0.25, 5, MeasuringDebt())
    times = [10.0] * 5 + [10.0, 90.0, 10.0, 10.0, 10.0]
    assert not any(drifts(drift, us, None) for us in times)


def test_a_slower_link_is_noticed_though_steps_take_as_long():
    drift = Drift(0.25, 2, MeasuringDebt())
    links = reducer(
        {"busy_us": 100, "bytes": 1000},
        {"busy_us": 200, "bytes": 2000},
        {"busy_us": 400, "bytes": 3000},
    )
    assert [drifts(drift, 10.0, links) for _ in range(6)] == [False] * 5 + [True]
    assert drift.reason == "link time a byte changed by +100 %"


def test_it_looks_once_a_profile_and_the_last_phase_are_there():
    drift = Drift(0.25, 1, MeasuringDebt())
    for early in ({"settled": False}, {"profiled": False}):
        for step_us in (10.0, 90.0):
            wish = drift.end_boundary(boundary(step_us=step_us, **early))
            assert wish is Wish.NOTHING
    assert not drifts(drift, 10.0, None)
    assert drifts(drift, 90.0, None)


def test_after_measuring_again_a_drift_waits_until_that_is_paid_back():
    seconds = iter(range(10_000))
    debt = MeasuringDebt(lambda: next(seconds))
    drift = Drift(0.25, 2, debt)
    debt.restart(measure=True)

    def course(times_us):
        for step_us in times_us:
            debt.end_boundary(boundary())
            if drifts(drift, step_us, None):
                return True
        return False

    restless = [10.0, 10.0, 90.0, 90.0]
    assert course(restless)
    debt.restart(measure=True)
    drift.restart()
    for _ in range(3):
        debt.end_boundary(boundary(settled=False))
    assert not course(15 * restless)
    assert course(15 * restless)
