from dataclasses import replace

import pytest
from hypothesis import given

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.plan.contents import contents
from deft_horovod.policies.pieces import use_order
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.models import request as model
from tests.unit.support.planning import requests

SAPIPE = policies.get("sapipe")


def late_parameters(plan):
    members = contents(plan.slots, plan.buckets)
    return {
        index
        for generation, inside in zip(plan.generations, members, strict=True)
        for index in inside
        if generation.delay
    }


@given(requests(linked=True))
def test_the_late_ones_are_the_first_to_be_used_and_one_step_late(request):
    plan = SAPIPE.plan(replace(request, config=Config()))
    late = late_parameters(plan)
    assert late == set(use_order(request.profile)[: len(late)])
    assert all(generation.delay <= 1 and generation.merged == 1 for generation in plan.generations)


@given(requests(linked=True))
def test_without_delay_it_does_what_bytescheduler_does(request):
    request = replace(request, config=Config(max_delay=0))
    expected = policies.get("bytescheduler").plan(request)
    assert SAPIPE.plan(request) == expected.model_copy(update={"policy": "sapipe"})


@pytest.mark.parametrize("name", ["vgg19", "gpt2"])
def test_a_few_late_layers_shorten_the_step(name):
    request = replace(model(name, 0.5), config=Config())
    plan = SAPIPE.plan(request)
    late = late_parameters(plan)
    assert 0 < len(late) < len(request.parameters)
    exact = SAPIPE.plan(replace(request, config=Config(max_delay=0)))
    assert simulate(plan, request.profile).step_us < simulate(exact, request.profile).step_us
