"""What is promised: all that may be rounded in the coarsest format that is allowed, nothing else,
nothing late, and a prediction by what was measured."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from deft_horovod import policies
from deft_horovod.plan.contents import contents
from deft_horovod.plan.formats import is_encoded, message_bytes
from deft_horovod.policies.limits import limits
from deft_horovod.runtime.extension import native
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.hard_requests import hard_requests
from tests.unit.support.models import request as model
from tests.unit.support.models import with_formats
from tests.unit.support.planning import assert_carried_once

FEWEST_BYTES, LEAST_STALE = policies.get("fewest_bytes"), policies.get("least_stale")


@settings(max_examples=8)
@given(hard_requests(max_count=60))
def test_plans_are_valid_in_time_and_predicted_for_the_links_that_were_measured(request):
    request = with_formats(request, "equal")
    plan = FEWEST_BYTES.plan(request)
    assert_carried_once(request.parameters, plan.arenas, plan.slots, plan.buckets)
    assert plan.policy == "fewest_bytes"
    assert {(s.delay, s.merged) for s in plan.prediction.staleness} <= {(0, 1)}
    assert plan.prediction.step_us == simulate(plan, request.profile).step_us
    assert plan.prediction.step_us >= plan.prediction.bound_us * (1 - 1e-9)
    native.Plan(plan.model_dump())


@settings(max_examples=8)
@given(hard_requests(max_count=60))
def test_what_may_be_rounded_travels_in_the_coarsest_format_and_nothing_else(request):
    plan = FEWEST_BYTES.plan(with_formats(request, "equal"))
    for bucket, members in zip(plan.buckets, contents(plan.slots, plan.buckets), strict=True):
        exact = {plan.slots[member].exact for member in members}
        if plan.arenas[bucket.arena].wire != "float32" or exact == {True}:
            assert bucket.format == "f32"
        elif exact == {False}:
            assert bucket.format == "int8"


@pytest.mark.parametrize("name", ["vgg19", "gpt2"])
@pytest.mark.parametrize("ccr", [0.25, 1.0, 4.0])
def test_it_sends_no_more_bytes_than_what_seems_to_be_enough_and_seems_as_fast(name, ccr):
    request = with_formats(model(name, ccr), "equal")
    fewest, enough = FEWEST_BYTES.plan(request), LEAST_STALE.plan(request)
    assert sum(message_bytes(fewest)) <= sum(message_bytes(enough)) * 1.01
    assert fewest.prediction.step_us < 1.02 * enough.prediction.step_us


def test_a_format_that_was_vetoed_is_not_used():
    request = with_formats(model("vgg19", 2.0), "equal")
    halves = replace(limits("fewest_bytes", request.config), formats=("f16",))
    plan = FEWEST_BYTES.plan(replace(request, limits=halves))
    assert {bucket.format for bucket in plan.buckets} == {"f16"}


def test_a_format_that_was_not_measured_is_not_used():
    (link,) = (request := with_formats(model("vgg19", 2.0), "equal")).profile.links
    measured = link.model_copy(update={"formats": link.formats[:1]})
    profile = request.profile.model_copy(update={"links": (measured,)})
    plan = FEWEST_BYTES.plan(replace(request, profile=profile))
    assert {bucket.format for bucket in plan.buckets} == {link.formats[0].format}


@pytest.mark.parametrize("accuracy", [None, "exact"])
def test_without_formats_every_bit_is_kept(accuracy):
    plan = FEWEST_BYTES.plan(with_formats(model("vgg19", 2.0), accuracy))
    assert not is_encoded(plan)
