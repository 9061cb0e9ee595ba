from dataclasses import replace

from hypothesis import given

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.plan.contents import contents
from deft_horovod.solver.predict.costs import task_times_us
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.models import request as model
from tests.unit.support.planning import requests

DEAR = policies.get("dear")


@given(requests(linked=True))
def test_every_bucket_is_scattered_once_and_then_gathered_once(request):
    plan = DEAR.plan(request)
    ops = [(task.op, task.generation) for task in plan.tasks]
    count = len(plan.buckets)
    assert sorted(index for op, index in ops[:count] if op == "reduce_scatter") == [*range(count)]
    assert sorted(index for op, index in ops[count:] if op == "all_gather") == [*range(count)]


@given(requests(linked=True))
def test_gathers_follow_in_the_order_of_use_and_only_what_is_gated_crosses_the_boundary(request):
    plan = DEAR.plan(request)
    members = contents(plan.slots, plan.buckets)
    uses = []
    for task in plan.tasks:
        crosses = (task.step, task.stage) == (1, "forward")
        assert crosses == (task.op == "all_gather" and plan.generations[task.generation].gated)
        if crosses:
            uses.append(min(request.profile.first_use_us[i] for i in members[task.generation]))
    assert uses == sorted(uses)


@given(requests(linked=True))
def test_what_cannot_be_gated_is_waited_for_at_the_boundary(request):
    plan = DEAR.plan(request)
    for generation, inside in zip(
        plan.generations, contents(plan.slots, plan.buckets), strict=True
    ):
        known = [request.profile.first_use_us[i] is not None for i in inside]
        assert generation.gated == all(known)


def test_both_halves_move_as_much_as_one_all_reduce():
    request = model("gpt2", 1.0)
    plan = DEAR.plan(request)
    alpha_us = request.profile.link.alpha_us
    total_us = sum(task_times_us(plan, request.profile)) - alpha_us * len(plan.tasks)
    size = sum(parameter.bytes for parameter in request.parameters)
    assert abs(total_us / (request.profile.link.beta_us_per_byte * size) - 1.0) < 0.01


def test_without_tuning_groups_keep_to_the_threshold():
    request = replace(model("resnet101", 1.0), config=Config(tune=False))
    plan = DEAR.plan(request)
    assert len(plan.buckets) > 1
    tuned = DEAR.plan(replace(request, config=Config()))
    assert simulate(tuned, request.profile).step_us <= simulate(plan, request.profile).step_us
