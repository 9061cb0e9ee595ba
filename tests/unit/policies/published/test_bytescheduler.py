from dataclasses import replace

import pytest
from hypothesis import given

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.plan.contents import contents
from deft_horovod.policies.pieces import wire_bytes
from deft_horovod.policies.published.tuning import sizes_bytes
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support import large
from tests.unit.support.models import request as model
from tests.unit.support.planning import bucket_bytes, requests

BYTESCHEDULER = policies.get("bytescheduler")


@given(requests(linked=True))
def test_without_tuning_partition_and_credit_are_those_of_the_options(request):
    request = replace(request, config=request.config.model_copy(update={"tune": False}))
    plan = BYTESCHEDULER.plan(request)
    assert plan.links[0].credit_bytes == request.config.credit_bytes
    for bucket in plan.buckets:
        assert bucket_bytes(plan.arenas, bucket) <= max(16, request.config.partition_bytes)


@given(requests(linked=True))
def test_what_leaves_in_forward_leaves_in_the_order_of_use(request):
    plan = BYTESCHEDULER.plan(request)
    members = contents(plan.slots, plan.buckets)
    uses = [
        request.profile.first_use_us[members[task.generation][0]]
        for task in plan.tasks
        if task.stage == "forward"
    ]
    assert uses == sorted(uses)


@pytest.mark.parametrize("name", ["vgg19", "resnet101", "gpt2"])
def test_tuning_is_predicted_to_be_no_slower_than_the_published_defaults(name):
    request = model(name, 1.0)
    tuned_us = simulate(BYTESCHEDULER.plan(request), request.profile).step_us
    default = replace(request, config=Config(tune=False))
    assert tuned_us <= simulate(BYTESCHEDULER.plan(default), request.profile).step_us


@pytest.mark.parametrize("coverage", [0.5, 4.0])
def test_of_many_gradients_no_size_that_was_left_out_would_have_been_faster(coverage):
    request = large.request(400, coverage)
    plan = BYTESCHEDULER.plan(request)
    for size in sizes_bytes(sum(wire_bytes(request))):
        config = Config(tune=False, partition_bytes=size, credit_bytes=4 * size)
        other = BYTESCHEDULER.plan(replace(request, config=config))
        assert plan.prediction.step_us <= other.prediction.step_us
