from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.policies.base import Defaults
from deft_horovod.policies.memory import Memory
from deft_horovod.solver.problem import Limits
from tests.unit.support.models import request as model


class Counting(Defaults):
    name = "counting"
    summary = "as another one, and counts"

    def __init__(self):
        self.asked = 0

    def plan(self, request):
        self.asked += 1
        return policies.get("bucket").plan(request)


@pytest.fixture
def counting():
    return Counting()


def test_the_same_question_is_asked_once(counting):
    policy = Memory().of(counting)
    first = policy.plan(model("resnet101", 1.0))
    assert policy.plan(model("resnet101", 1.0)) is first
    assert counting.asked == 1


def test_another_profile_or_config_is_another_question(counting):
    policy = Memory().of(counting)
    request = model("resnet101", 1.0)
    asked = [
        request,
        model("resnet101", 2.0),
        replace(request, config=request.config.model_copy(update={"bucket_bytes": 1 << 20})),
        replace(request, groups=((0, 1),)),
    ]
    plans = [policy.plan(one) for one in asked]
    assert counting.asked == len(asked)
    assert plans == [policies.get("bucket").plan(one) for one in asked]


def test_late_and_in_time_are_two_questions_that_are_both_remembered(counting):
    policy = Memory().of(counting)
    request = model("resnet101", 1.0)
    late = replace(request, limits=Limits(max_delay=1, max_merge=1))
    in_time = replace(request, limits=Limits(max_delay=0, max_merge=1))
    for _ in range(3):
        policy.plan(late)
        policy.plan(in_time)
    assert counting.asked == 2


def test_policies_do_not_share_plans(counting):
    memory, request = Memory(), model("resnet101", 1.0)
    memory.of(counting).plan(request)
    assert memory.of(policies.get("priority")).plan(request).policy == "priority"


def test_everything_else_is_the_policys_own():
    for policy in policies.registry().values():
        same = Memory().of(policy)
        for name in ("name", "summary", "measures", "gates", "uses_executor", "correction"):
            assert getattr(same, name) == getattr(policy, name)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=80))
def test_what_is_forgotten_is_planned_again(sizes):
    counting = Counting()
    policy, request = Memory().of(counting), model("resnet101", 1.0)
    for size in sizes:
        config = request.config.model_copy(update={"bucket_bytes": (1 + size) << 20})
        asked = replace(request, config=config)
        assert policy.plan(asked) == policies.get("bucket").plan(asked)
    assert len(set(sizes)) <= counting.asked <= len(sizes)
    if len(set(sizes)) <= 16:
        assert counting.asked == len(set(sizes))
