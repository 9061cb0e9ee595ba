"""Plans within the accuracy budget."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.plan.staleness import staleness
from deft_horovod.preserver.cost import Gradients, cost, lateness
from deft_horovod.preserver.judge import preserved
from tests.unit.support.hard_requests import assert_within_limits, hard_requests
from tests.unit.support.models import request as model


def turning(turn):
    """Gradients without noise that turn by so much."""
    return Gradients(1.0, 1.0, turn, ranks=4, steps=50)


def late(plan):
    found = lateness(staleness(plan))
    return found.delayed + found.merged


@pytest.mark.slow
@settings(max_examples=8)
@given(
    hard_requests(max_count=40, least_delay=1),
    st.floats(0, 5),
    st.floats(0, 0.2),
    st.sampled_from(["least_stale", "deft"]),
    st.sampled_from(["local", "none"]),
)
def test_what_runs_is_within_budget_and_limits(request, turn, budget, name, correction):
    policy = policies.get(name)
    plan, said = preserved(policy, request, turning(turn), correction, budget)
    assert cost(lateness(staleness(plan)), turn, correction) == pytest.approx(said.cost)
    assert said.cost <= budget
    assert_within_limits(plan, request)
    asked = policy.plan(request)
    assert said.asked_cost == pytest.approx(cost(lateness(staleness(asked)), turn, correction))
    assert (said.verdict == "kept") == (said.asked_cost <= budget)
    if said.verdict == "kept":
        assert plan == asked
    else:
        assert late(plan) < late(asked)
    assert (said.verdict == "refused") == (late(plan) == 0.0 and said.verdict != "kept")


@pytest.mark.parametrize("name", ["least_stale", "deft"])
def test_before_gradients_were_measured_nothing_is_late(name):
    asked = model("vgg19", 1.5, max_delay=1, max_merge=4)
    plan, said = preserved(policies.get(name), asked, None, "local", 0.02)
    assert late(policies.get(name).plan(asked)) > 0.0
    assert late(plan) == 0.0
    assert (said.verdict, said.turn) == ("refused", None)


@pytest.mark.slow
def test_as_much_stays_late_as_is_affordable():
    asked = model("gpt2", 1.0, max_delay=1)
    policy = policies.get("least_stale")
    full = policy.plan(asked)
    exact, refused = preserved(policy, asked, turning(100.0), "local", 0.02)
    assert (refused.verdict, late(exact)) == ("refused", 0.0)
    before = full
    for turn in (1.2, 2.0, 3.0):
        plan, said = preserved(policy, asked, turning(turn), "local", 0.02)
        assert said.verdict == "limited"
        assert 0.0 < late(plan) < late(before)
        assert plan.prediction.step_us < exact.prediction.step_us
        before = plan
    # The first half of lateness that goes costs next to nothing: the rest still hides nearly all.
    plan, _ = preserved(policy, asked, turning(1.6), "local", 0.02)
    assert late(plan) < 0.5
    assert plan.prediction.step_us < 1.05 * full.prediction.step_us


@pytest.mark.slow
def test_sums_of_two_steps_go_as_far_as_is_affordable_where_they_save_time():
    asked = {"name": "resnet101", "ccr": 2.0, "max_delay": 1}
    policy = policies.get("least_stale")
    delayed, _ = preserved(policy, model(**asked), turning(1.0), "local", 0.02)
    plan, said = preserved(policy, model(**asked, max_merge=4), turning(1.0), "local", 0.02)
    assert said.verdict == "limited"
    assert {kind.merged for kind in staleness(plan)} == {1, 2}
    assert plan.prediction.step_us < 0.9 * delayed.prediction.step_us
    only, _ = preserved(policy, model("resnet101", 2.0, max_merge=4), turning(1e3), "local", 0.02)
    assert {(kind.delay, kind.merged) for kind in staleness(only)} == {(0, 1), (0, 2)}


def test_a_plan_that_is_hardly_late_runs_however_gradients_turn():
    asked = model("vgg19", 1.0, max_delay=1)
    plan, said = preserved(policies.get("least_stale"), asked, turning(3.0), "none", 0.02)
    assert plan == policies.get("least_stale").plan(asked)
    assert (said.verdict, 0.0 < said.cost < 0.001) == ("kept", True)


def test_a_policy_that_cannot_do_less_gives_way_to_the_best_exact_plan():
    asked = model("vgg19", 1.5)
    plan, said = preserved(policies.get("deft"), asked, turning(3.0), "local", 0.001)
    assert (plan.policy, said.verdict) == ("least_stale", "refused")
