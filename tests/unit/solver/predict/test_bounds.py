from dataclasses import replace

import pytest
from hypothesis import given, settings

from deft_horovod import policies
from deft_horovod.profile import LinkCost, LinkProfile, Profile
from deft_horovod.solver.predict.bounds import bound_us
from deft_horovod.solver.predict.timeline import simulate
from deft_horovod.solver.problem import Limits
from tests.unit.support.hard_requests import hard_requests
from tests.unit.support.models import request as model
from tests.unit.support.planning import make_parameters


@settings(max_examples=60)
@given(hard_requests(max_count=60))
def test_no_synchronous_plan_is_faster(request):
    bound = bound_us(request.parameters, request.profile, Limits(0, 1))
    for name in ("bucket", "priority", "wfbp"):
        plan = policies.get(name).plan(request)
        assert simulate(plan, request.profile).step_us >= bound * (1 - 1e-9)


@settings(max_examples=60)
@given(hard_requests(max_count=60))
def test_wider_limits_never_raise_the_bound(request):
    members, profile = request.parameters, request.profile
    for narrow, wide in (((0, 1), (1, 1)), ((0, 1), (0, 4)), ((1, 2), (3, 4))):
        low = bound_us(members, profile, Limits(*wide))
        assert profile.compute_us <= low <= bound_us(members, profile, Limits(*narrow)) * (1 + 1e-9)


def one(ready_us, first_use_us, time_us, **changes):
    """Forward 40, backward 60; one gradient of 1,000 bytes. A second one weighs nothing."""
    profile = Profile(
        ready_order=(0, 1),
        ready_us=(ready_us, 0.0),
        first_use_us=(first_use_us, 0.0),
        forward_us=40.0,
        backward_us=60.0,
        links=Profile.link_of(LinkCost(alpha_us=1.0, beta_us_per_byte=(time_us - 1.0) / 1000)),
    )
    profile = profile.model_copy(update=changes)
    return lambda *limits: bound_us(make_parameters([250, 0]), profile, Limits(*limits))


def test_what_is_ready_last_and_used_first_is_exposed():
    assert one(60.0, 0.0, 30.0)(0, 1) == pytest.approx(130.0)
    assert one(60.0, 25.0, 30.0)(0, 1) == pytest.approx(105.0)
    assert one(60.0, None, 30.0)(0, 1) == pytest.approx(130.0)  # no gate can wait for it
    assert one(50.0, 25.0, 30.0)(0, 1) == pytest.approx(100.0)
    assert one(60.0, 0.0, 30.0, optimizer_us=20.0)(0, 1) == pytest.approx(130.0)
    assert one(60.0, 0.0, 30.0)(1, 1) == pytest.approx(100.0)


def test_all_bytes_travel_once_in_as_many_steps_as_may_be_merged():
    assert one(0.0, 40.0, 240.0)(1, 1) == pytest.approx(240.0)
    assert one(0.0, 40.0, 240.0)(1, 2) == pytest.approx(120.0)


def test_one_that_is_larger_than_its_window_is_exposed_once_in_each_sum():
    # 140 from ready to the gate a step later at most; sent once in two steps.
    assert one(60.0, 40.0, 190.0)(1, 2) == pytest.approx(100.0 + (190.0 - 140.0) / 2)


def test_links_carry_parts_at_the_same_time_as_fast_as_ever_measured():
    cost = LinkCost(alpha_us=1.0, beta_us_per_byte=0.24)
    slow = LinkCost(alpha_us=2.0, beta_us_per_byte=0.48)
    links = (
        LinkProfile(name="horovod", cost=cost, busy_cost=slow),
        LinkProfile(name="gloo", cost=slow, busy_cost=cost),
    )
    assert one(0.0, 40.0, 9.0, links=links)(1, 1) == pytest.approx(121.0)


def test_without_a_link_or_bytes_only_compute_counts():
    given_model = model("vgg19", 4.0)
    profile = given_model.profile.model_copy(update={"links": ()})
    assert bound_us(given_model.parameters, profile, Limits(0, 1)) == profile.compute_us
    empty = tuple(replace(parameter, elements=0) for parameter in given_model.parameters)
    assert bound_us(empty, given_model.profile, Limits(0, 1)) == profile.compute_us


def test_the_embedding_of_a_language_model_sets_the_synchronous_bound():
    gpt2 = model("gpt2", 1.0)
    share = gpt2.parameters[0].bytes / sum(parameter.bytes for parameter in gpt2.parameters)
    bound = bound_us(gpt2.parameters, gpt2.profile, Limits(0, 1))
    assert bound >= 200_000 * (1.0 + share)
    assert bound_us(gpt2.parameters, gpt2.profile, Limits(1, 1)) < 205_000
