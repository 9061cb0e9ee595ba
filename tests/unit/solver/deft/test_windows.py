from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod.base.period import LONGEST_PERIOD
from deft_horovod.solver.deft.windows import Cadence, Rhythm, schedule
from deft_horovod.solver.problem import Item, Limits, Problem

STEP_US = 200.0


@st.composite
def problems(draw):
    links = draw(st.integers(1, 3))
    pick = draw(st.randoms(use_true_random=False))
    forward_us = draw(st.sampled_from([20.0, 70.0, 120.0]))
    count, rate = draw(st.integers(1, 12)), draw(st.sampled_from([0.02, 0.3, 1.0, 2.0, 8.0]))
    items = []
    for _ in range(count):
        time_us = pick.uniform(0.2, 2.0) * rate * STEP_US / count
        pieces = pick.choice([1, 1, 3])
        times = tuple(time_us / pieces * (1.0, 2.5, 4.0)[link] for link in range(links))
        items.append(Item(pick.uniform(0, STEP_US - forward_us), None, 1.0, (times,) * pieces))
    limits = Limits(draw(st.integers(1, 3)), draw(st.integers(1, 6)))
    return Problem(tuple(items), forward_us, STEP_US - forward_us, 0.0, links, limits)


@st.composite
def cadences(draw, problem):
    lengths = [k for k in (1, 2, 4) if k <= problem.limits.max_merge]
    period = max(lengths)
    rhythms = []
    for _ in problem.items:
        every = draw(st.sampled_from(lengths))
        rhythms.append(Rhythm(every, draw(st.integers(0, every - 1))))
    return Cadence(period, tuple(rhythms))


def windows(played):
    """What travels in each window of the steady state."""
    found = defaultdict(list)
    for departure in played.departures:
        after, stage = departure.window
        found[(departure.step + after) % played.period, stage].append(departure)
    return found


def check(problem, played):
    limits = problem.limits
    assert 1 <= played.period <= LONGEST_PERIOD
    for block, timing in enumerate(played.timings):
        steps = []
        for first, last, delay in timing.spans:
            assert 0 <= last < played.period
            assert 1 <= last - first + 1 <= limits.max_merge
            assert 0 <= delay <= limits.max_delay
            steps += [step % played.period for step in range(first, last + 1)]
            sent = [d for d in played.departures if (d.block, d.step) == (block, last)]
            assert sorted(d.bucket for d in sent) == list(range(len(problem.items[block].times_us)))
            assert max(d.window[0] for d in sent) == delay
        assert sorted(steps) == list(range(played.period))
    room_us = {
        "forward": problem.forward_us * problem.margin,
        "backward": problem.backward_us * problem.margin,
    }
    for (_, stage), leaving in windows(played).items():
        for link in range(problem.links):
            mine = [d for d in leaving if d.link == link]
            busy_us = sum(problem.items[d.block].times_us[d.bucket][link] for d in mine)
            if busy_us > room_us[stage]:
                assert stage == "backward"
                assert any(d.window == (limits.max_delay, "backward") for d in leaving)


@pytest.mark.slow
@settings(max_examples=60)
@given(problems())
def test_what_repeats_is_complete_within_the_limits_and_the_windows(problem):
    played = schedule(problem)
    assert played == schedule(problem)
    if played is not None:
        check(problem, played)


@settings(max_examples=60)
@given(st.data())
def test_so_is_what_follows_a_cadence(data):
    problem = data.draw(problems())
    cadence = data.draw(cadences(problem))
    played = schedule(problem, cadence)
    assert played == schedule(problem, cadence)
    if played is None:
        return
    check(problem, played)
    for timing, rhythm in zip(played.timings, cadence.rhythms, strict=True):
        assert {last - first + 1 for first, last, _ in timing.spans} == {rhythm.every}


@settings(max_examples=60)
@given(st.data())
def test_a_plain_cadence_always_repeats_itself(data):
    problem = data.draw(problems())
    cadence = data.draw(cadences(problem))
    played = schedule(problem, cadence, plain=True)
    check(replace(problem, limits=Limits(1, problem.limits.max_merge)), played)
    assert {delay for timing in played.timings for _, _, delay in timing.spans} == {1}


@settings(max_examples=60)
@given(problems())
def test_nothing_is_reordered(problem):
    played = schedule(problem)
    if played is None:
        return
    places = []
    for departure in played.departures:
        after, stage = departure.window
        window = (departure.step + after, stage == "backward")
        ready_us = problem.items[departure.block].ready_us
        places.append((window, departure.step, ready_us, departure.block, departure.bucket))
    assert places == sorted(places)


def one(time_us, *, ready_us=0.0, pieces=1, max_merge=4):
    item = Item(ready_us, None, 1.0, ((time_us / pieces,),) * pieces)
    return Problem((item,), 70.0, 130.0, 0.0, 1, Limits(1, max_merge))


def test_what_fits_behind_its_backward_is_synchronous():
    played = schedule(one(100.0, ready_us=20.0))
    assert (played.period, played.timings[0].spans) == (1, ((0, 0, 0),))


def test_what_is_ready_too_late_rides_the_next_forward():
    played = schedule(one(60.0, ready_us=120.0))
    assert (played.period, played.timings[0].spans) == (1, ((0, 0, 1),))
    assert played.departures[0].window == (1, "forward")


def test_what_is_larger_than_a_window_is_spread():
    played = schedule(one(180.0, ready_us=120.0, pieces=12))
    assert played.timings[0].spans == ((0, 0, 1),)
    assert {d.window for d in played.departures} == {(1, "forward"), (1, "backward")}


def test_gradients_that_cannot_travel_every_step_are_summed():
    item = Item(0.0, None, 1.0, ((60.0,),))
    problem = Problem((item,) * 6, 70.0, 130.0, 0.0, 1, Limits(1, 4))
    played = schedule(problem)
    lengths = [last - first + 1 for t in played.timings for first, last, _ in t.spans]
    assert max(lengths) in (2, 3)  # 3 of 6 fit into each step
    sends = len(played.departures) / played.period
    assert sends == pytest.approx(3.0)


def test_what_fits_nowhere_is_sent_when_its_limit_is_reached():
    played = schedule(one(500.0, max_merge=2))
    assert [last - first + 1 for first, last, _ in played.timings[0].spans] == [2]
    assert played.departures[0].window == (1, "backward")


def test_without_compute_everything_is_merged_and_exposed():
    item = Item(0.0, None, 1.0, ((60.0,),))
    played = schedule(Problem((item,), 0.0, 0.0, 0.0, 1, Limits(1, 3)))
    assert [last - first + 1 for first, last, _ in played.timings[0].spans] == [3]
