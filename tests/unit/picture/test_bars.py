"""Rectangles of a timeline."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deft_horovod.picture.bars import plan_bars, stock_bars
from deft_horovod.plan import Plan
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.simulate.stock import simulate_stock
from deft_horovod.solver.predict.timeline import Timeline, simulate
from tests.unit.picture.test_timeline import example
from tests.unit.solver.predict.test_timeline import whole_profiles
from tests.unit.support.planning import make_parameters, profiles
from tests.unit.support.random_plans import plans


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_bars_of_a_row_lie_beside_each_other(data):
    plan = data.draw(plans())
    timeline = simulate(plan, data.draw(whole_profiles(plan)))
    shown = plan_bars(plan, timeline)
    for row in range(len(plan.links) + 1):
        inside = sorted((b.begins_us, b.ends_us) for b in shown if b.row == row)
        assert all(begins_us < ends_us for begins_us, ends_us in inside)
        if timeline.steady:
            assert all(one[1] <= other[0] + 1e-6 for one, other in pairwise(inside))
    if timeline.steady and timeline.period_us > 0.0:  # compute has no gap
        seen_us = sum(b.ends_us - b.begins_us for b in shown if b.row == 0)
        assert seen_us == pytest.approx(timeline.period_us * (2 if plan.period == 1 else 1))
        carried_us = [0.0] * len(plan.links)
        for bar in shown:
            if bar.row:
                carried_us[bar.row - 1] += (bar.ends_us - bar.begins_us) / seen_us
        assert carried_us == pytest.approx(timeline.link_busy, abs=1e-6)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_compute_fills_any_time_that_is_to_be_covered(data):
    plan = data.draw(plans())
    timeline = simulate(plan, data.draw(whole_profiles(plan)))
    duration_us = data.draw(st.floats(0.1, 5.0)) * timeline.period_us
    shown = [bar for bar in plan_bars(plan, timeline, duration_us) if bar.row == 0]
    assert all(0.0 <= bar.begins_us < bar.ends_us <= duration_us for bar in shown)
    if timeline.steady:
        assert sum(b.ends_us - b.begins_us for b in shown) == pytest.approx(duration_us)


def test_a_whole_period_has_every_message():
    plan, profile = example()
    timeline = simulate(plan, profile)
    shown = plan_bars(plan, timeline, timeline.period_us)
    assert {bar.label for bar in shown if bar.row} == {str(b) for b in range(len(plan.buckets))}
    assert all(bar.detail.startswith(f"bucket {bar.label}: ") for bar in shown if bar.row)


@given(st.data())
def test_stock_steps_are_whole(data):
    parameters = make_parameters(data.draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=9)))
    profile = data.draw(profiles(len(parameters)))
    step = simulate_stock(parameters, profile)
    shown = stock_bars(step, profile, 2 * step.step_us)
    compute = [bar for bar in shown if bar.row == 0]
    assert sum(b.ends_us - b.begins_us for b in compute) == pytest.approx(2 * step.step_us)
    waited_us = sum(b.ends_us - b.begins_us for b in compute if b.kind == "waiting")
    assert waited_us == pytest.approx(2 * step.exposed_us, abs=1e-3)
    carried_us = sum(b.ends_us - b.begins_us for b in shown if b.row == 1)
    sent_us = sum(m.arrives_us - m.starts_us for m in step.messages)
    assert carried_us == pytest.approx(2 * sent_us, rel=1e-6, abs=1e-3)


def test_stock_messages_say_what_is_fused_in_them():
    links = Profile.link_of(LinkCost(alpha_us=1.0, beta_us_per_byte=1.0))
    profile = Profile.assumed(3).model_copy(update={"links": links})
    step = simulate_stock(make_parameters([1, 1, 1]), profile)
    details = [bar.detail for bar in stock_bars(step, profile, step.step_us) if bar.row]
    assert details == ["3 tensors fused, 12 B"]
    named = stock_bars(step, profile, step.step_us, ["buckets 0-2"])
    assert [bar.detail for bar in named if bar.row] == ["buckets 0-2, 12 B"]


def test_where_nothing_takes_time_nothing_is_seen():
    profile = Profile.assumed(0)
    assert stock_bars(simulate_stock((), profile), profile, 10.0) == []
    plan = Plan(policy="stock")
    timeline = simulate(plan, profile)
    assert isinstance(timeline, Timeline)
    assert plan_bars(plan, timeline) == []
