"""Measuring again and again takes a twentieth of the time, once the first change was followed."""

import logging

import horovod.torch as stock
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.decide.measuring_debt import SHARE, MeasuringDebt
from deft_horovod.runtime.follower import Wish
from tests.unit.support.boundaries import boundary


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


class Course:
    """Steps on a clock of its own."""

    def __init__(self, measured=0):
        self.now_s = 0.0
        self.debt = MeasuringDebt(lambda: self.now_s)
        for _ in range(measured):
            self.debt.restart(measure=True)

    def step(self, seconds, *, settled):
        self.now_s += seconds
        return self.debt.end_boundary(boundary(settled=settled))


def test_what_a_job_measures_at_first_is_no_debt():
    course = Course(measured=1)
    for settled in (*[False] * 10, True):
        course.step(3.0, settled=settled)
        assert course.debt.paid


def test_a_job_that_never_settles_makes_debts_from_its_second_measurement_on():
    course = Course(measured=1)
    course.step(3.0, settled=False)
    course.debt.restart(measure=True)
    assert course.debt.paid
    course.step(3.0, settled=False)
    assert not course.debt.paid


@given(st.floats(0.1, 100.0), st.integers(1, 20), st.floats(0.01, 10.0))
def test_a_measurement_is_paid_back_by_twenty_times_as_long(measured_s, steps, step_s):
    course = Course(measured=2)
    for _ in range(steps):
        course.step(measured_s / steps, settled=False)
    course.step(step_s, settled=True)  # planning ends in it
    taken_s = began_s = course.now_s
    while not course.debt.paid:
        course.step(step_s, settled=True)
    assert abs(course.now_s - began_s - taken_s / SHARE) <= step_s + 1e-6 * course.now_s


@given(st.floats(0.05, 5.0), st.integers(1, 40), st.integers(1, 50))
def test_whoever_measures_whenever_it_is_paid_does_so_a_twentieth_of_the_time(
    step_s, measures, runs
):
    course, measured = Course(measured=1), []
    course.step(step_s, settled=True)
    while len(measured) < 4:
        for _ in range(runs):  # a drift has to last
            course.step(step_s, settled=True)
        if course.debt.paid:
            measured.append(course.now_s)
            course.debt.restart(measure=True)
            for _ in range(measures):
                course.step(step_s, settled=False)
            course.step(step_s, settled=True)
    between_s = measured[-1] - measured[0]
    taken_s = 3 * (measures + 1) * step_s
    assert taken_s <= 1.001 * SHARE * (between_s - taken_s)


def test_a_long_quiet_time_is_no_credit():
    course = Course(measured=1)
    for _ in range(100):
        course.step(100.0, settled=True)
    course.debt.restart(measure=True)
    course.step(1.0, settled=False)
    course.step(1.0, settled=True)
    assert not course.debt.paid


def test_what_is_postponed_is_asked_for_once_the_debt_is_paid(caplog):
    course = Course(measured=2)
    course.step(1.0, settled=False)
    with caplog.at_level(logging.WARNING, logger="deft_horovod"):
        course.debt.restart(measure=False)
        course.debt.restart(measure=False)
    (said,) = caplog.records
    assert "stock Horovod runs until measuring has taken no more than 5%" in said.getMessage()
    course.step(1.0, settled=True)
    wishes = [course.step(1.0, settled=True) for _ in range(60)]
    first = wishes.index(Wish.MEASURE_AGAIN)
    assert 38 <= first <= 41
    assert set(wishes[first:]) == {Wish.MEASURE_AGAIN}
    course.debt.restart(measure=True)
    assert course.step(1.0, settled=True) is Wish.NOTHING
