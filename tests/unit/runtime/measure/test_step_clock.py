import pytest

from deft_horovod.runtime.measure import step_clock
from deft_horovod.runtime.measure.step_clock import StepClock


class Time:
    """A clock that stands still until it is told."""

    def __init__(self):
        self.now_s = 100.0

    def perf_counter(self):
        return self.now_s


@pytest.fixture
def time(monkeypatch):
    time = Time()
    monkeypatch.setattr(step_clock, "time", time)
    return time


def step(clock, time, compute_s, exposed_s):
    time.now_s += compute_s
    with clock.exposed():
        time.now_s += exposed_s
    clock.boundary()


def test_before_a_whole_step_everything_is_zero(time):
    clock = StepClock()
    assert clock.medians() == {"step_us": 0.0, "compute_us": 0.0, "exposed_us": 0.0}
    clock.boundary()
    assert clock.medians()["step_us"] == 0.0
    assert clock.steps == 1


def test_a_step_is_compute_and_what_was_waited(time):
    clock = StepClock()
    clock.boundary()
    for compute_s, exposed_s in [(0.010, 0.002), (0.020, 0.001), (0.030, 0.003)]:
        step(clock, time, compute_s, exposed_s)
    medians = clock.medians()
    assert medians["step_us"] == pytest.approx(21_000)
    assert medians["compute_us"] == pytest.approx(20_000)
    assert medians["exposed_us"] == pytest.approx(2_000)
    assert clock.steps == 4


def test_waits_of_one_step_add_up_and_end_with_it(time):
    clock = StepClock()
    clock.boundary()
    for _ in range(3):
        with clock.exposed():
            time.now_s += 0.001
    clock.boundary()
    assert clock.medians()["exposed_us"] == pytest.approx(3_000)
    time.now_s += 1
    clock.boundary()
    assert clock.medians()["exposed_us"] == pytest.approx(1_500)


def test_a_wait_that_fails_counts(time):
    clock = StepClock()
    clock.boundary()
    with pytest.raises(TimeoutError), clock.exposed():  # noqa: PT012  # both lines are the point
        time.now_s += 0.5
        raise TimeoutError
    clock.boundary()
    assert clock.medians()["exposed_us"] == pytest.approx(500_000)


def test_medians_forget_what_is_long_ago(time):
    clock = StepClock()
    clock.boundary()
    for _ in range(300):
        step(clock, time, 1.0, 0.0)
    for _ in range(200):
        step(clock, time, 0.001, 0.0)
    assert clock.medians()["step_us"] == pytest.approx(1_000)
