import pytest

from deft_horovod.runtime import stats
from deft_horovod.runtime.stats import StepClock, step_stats


class Time:
    """A clock that stands still until it is told."""

    def __init__(self):
        self.now_s = 100.0

    def perf_counter(self):
        return self.now_s


@pytest.fixture
def time(monkeypatch):
    time = Time()
    monkeypatch.setattr(stats, "time", time)
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


class FakeLink:
    def __init__(self, name, size_bytes, messages, busy_us):
        self.name = name
        self.bytes = size_bytes
        self.messages = messages
        self.busy_us = busy_us


class FakePlanned:
    def __init__(self, links):
        self.plan = self
        self.session = self
        self.links = links
        self.buffer_bytes = 512
        self.late = True
        self.route = self
        self.correction = "local"
        self.prediction = None

    def hash(self):
        return "abc"

    def sent(self):
        return self.links


def test_totals_are_the_sum_of_the_links(time):
    links = [FakeLink("fast", 100, 2, 7), FakeLink("slow", 30, 1, 5)]
    found = step_stats(StepClock(), FakePlanned(links))
    assert found["links"]["fast"] == {"bytes": 100, "messages": 2, "communication_us": 7}
    assert (found["bytes"], found["messages"], found["communication_us"]) == (130, 3, 12)
    assert (found["plan"], found["buffer_bytes"]) == ("abc", 512)
    assert (found["late"], found["correction"], found["prediction"]) == (True, "local", None)


def test_without_a_plan_nothing_was_sent(time):
    found = step_stats(StepClock(), None)
    assert (found["bytes"], found["messages"], found["links"]) == (0, 0, {})
    assert (found["plan"], found["buffer_bytes"]) == (None, 0)
    assert (found["late"], found["correction"], found["prediction"]) == (False, "none", None)


def test_the_keys_do_not_depend_on_what_runs(time):
    planned = step_stats(StepClock(), FakePlanned([]))
    assert planned.keys() == step_stats(StepClock(), None).keys()
