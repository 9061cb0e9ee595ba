from hypothesis import given

from deft_horovod import policies
from deft_horovod.plan.contents import contents
from tests.unit.support.planning import requests


@given(requests())
def test_one_message_a_tensor_in_ready_order(request):
    plan = policies.get("wfbp").plan(request)
    inside = contents(plan.slots, plan.buckets)
    assert all(len(members) == 1 for members in inside)
    assert [inside[task.generation][0] for task in plan.tasks] == list(request.profile.ready_order)


@given(requests())
def test_nothing_holds_a_message_back(request):
    plan = policies.get("wfbp").plan(request)
    link = plan.links[0]
    assert (link.plan_order, link.credit_bytes, link.credit_messages) == (False, 0, 0)
    assert all((task.step, task.stage) == (0, "backward") for task in plan.tasks)
    assert not any(generation.gated for generation in plan.generations)
