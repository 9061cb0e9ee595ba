from dataclasses import replace

from hypothesis import given

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.policies.published.tuning import sizes_bytes
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.models import request as model
from tests.unit.support.planning import bucket_bytes, requests

P3 = policies.get("p3")


@given(requests(linked=True))
def test_one_slice_is_in_flight(request):
    assert P3.plan(request).links[0].credit_messages == 1


@given(requests(linked=True))
def test_without_tuning_slices_are_what_the_options_say(request):
    request = replace(request, config=request.config.model_copy(update={"tune": False}))
    plan = P3.plan(request)
    for bucket in plan.buckets:
        assert bucket_bytes(plan.arenas, bucket) <= max(16, request.config.partition_bytes)


def test_no_other_size_is_predicted_to_be_faster():
    request = model("vgg19", 1.0)
    step_us = simulate(P3.plan(request), request.profile).step_us
    for size in sizes_bytes(sum(parameter.bytes for parameter in request.parameters)):
        config = Config(tune=False, partition_bytes=size)
        other = P3.plan(replace(request, config=config))
        assert step_us <= 1.01 * simulate(other, request.profile).step_us
