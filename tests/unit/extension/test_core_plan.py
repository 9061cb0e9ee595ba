"""The executor reads the same plans as Python writes, and refuses the same ones."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.errors import PlanError
from deft_horovod.plan import Plan
from deft_horovod.runtime.extension import native
from tests.unit.plan.test_formats import plan_of
from tests.unit.support.planning import requests
from tests.unit.support.random_plans import plans

PLANNERS = sorted(name for name, p in policies.registry().items() if p.uses_executor)
PARTS = ("links", "arenas", "slots", "buckets", "generations", "tasks")


def refused_here(fields):
    try:
        Plan(**fields)
    except PlanError as error:
        return str(error)
    return None


def refused_there(fields):
    try:
        native.Plan(fields)
    except native.CorePlanError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=60)
@given(data=st.data())
def test_the_plans_of_every_policy_pass(name, data):
    policy = policies.get(name)
    plan = policy.plan(data.draw(requests(grouped=policy.supports_groups)))
    there = native.Plan(plan.model_dump())
    assert there.buckets == len(plan.buckets)
    assert there.tasks == len(plan.tasks)


def test_messages_have_sizes_of_their_own_or_those_of_their_buckets():
    fields = plan_of([1000, 3000], [False, False], [0.5], "int8").model_dump()
    assert native.Plan(fields, [300, 700]).buckets == len(fields["buckets"])
    assert native.Plan(fields).buckets == len(fields["buckets"])
    with pytest.raises(native.CorePlanError, match="sizes of 1 messages"):
        native.Plan(fields, [300])


@settings(max_examples=100)
@given(plans())
def test_plans_of_any_shape_pass(plan):
    assert refused_there(plan.model_dump()) is None


def _numbers(fields):
    """Places of all numbers and flags: (part, index, key); the plan's own: (None, 0, key)."""
    yield from ((None, 0, key) for key in ("period", "buffers"))
    for part in PARTS:
        for index, item in enumerate(fields[part]):
            for key, value in item.items():
                if isinstance(value, int):
                    yield part, index, key


def _mutate(fields, pick):
    part, index, key = pick.choice(list(_numbers(fields)))
    item = fields if part is None else fields[part][index]
    if isinstance(item[key], bool):
        item[key] = not item[key]
    else:
        item[key] += pick.choice([-16, -4, -2, -1, 1, 2, 4, 16])


@settings(max_examples=500)
@given(plans(), st.integers(1, 2), st.randoms(use_true_random=False))
def test_both_sides_draw_the_same_line(plan, changes, pick):
    fields = copy.deepcopy(plan.model_dump())
    for _ in range(changes):
        _mutate(fields, pick)
    here, there = refused_here(fields), refused_there(fields)
    assert (here is None) == (there is None), f"here: {here}\nthere: {there}\n{fields}"


def _good():
    fields = {
        "version": 2,
        "policy": "hand-made",
        "period": 1,
        "buffers": 1,
        "links": [{"name": "a"}, {"name": "b"}],
        "arenas": [{"dtype": "float32", "wire": "float32", "device": "cpu", "elements": 16}],
        "slots": [
            {"name": "x", "arena": 0, "begin": 0, "end": 8},
            {"name": "y", "arena": 0, "begin": 8, "end": 16},
        ],
        "buckets": [{"arena": 0, "begin": 0, "end": 8}, {"arena": 0, "begin": 8, "end": 16}],
        "generations": [{"bucket": 0}, {"bucket": 1}],
        "tasks": [{"generation": 0}, {"generation": 1, "link": 1}],
    }
    return Plan(**fields).model_dump()


BROKEN = {
    "a link of no name": ("links", 0, "name", ""),
    "two links of one name": ("links", 0, "name", "b"),
    "credit without order": ("links", 0, {"credit_bytes": 1, "plan_order": False}, None),
    "unknown wire": ("arenas", 0, "wire", "int8"),
    "gap": ("buckets", 1, "begin", 12),
    "overlap": ("buckets", 0, "end", 12),
    "short": ("buckets", 1, "end", 12),
    "unaligned slot": ("slots", 1, "begin", 9),
    "slot without a header": ("slots", 0, "end", 3),
    "slots that overlap": ("slots", 0, "end", 9),
    "slot in no arena": ("slots", 0, "arena", 1),
    "generation of no bucket": ("generations", 1, "bucket", 2),
    "a bucket carried twice": ("generations", 1, "bucket", 0),
    "applied too early": ("generations", 0, {"first_step": 1, "last_step": 1}, None),
    "task of no generation": ("tasks", 0, "generation", 7),
    "a generation that never travels": ("tasks", 0, "generation", 1),
    "task on no link": ("tasks", 0, "link", 2),
    "leaves before its gradients": ("tasks", 0, "stage", "forward"),
    "leaves after it is applied": ("tasks", 0, "step", 1),
    "unknown operation": ("tasks", 0, "op", "all_to_all"),
    "unknown stage": ("tasks", 0, "stage", "update"),
    "no rank": ("tasks", 0, "root", -1),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_plans_are_refused_on_both_sides(what):
    part, index, change, value = BROKEN[what]
    fields = _good()
    changes = change if isinstance(change, dict) else {change: value}
    fields[part] = [item | changes if i == index else item for i, item in enumerate(fields[part])]
    assert refused_here(_good()) is None
    assert refused_there(_good()) is None
    assert refused_here(fields) is not None
    assert refused_there(fields) is not None


def test_a_plan_without_a_field_is_refused_and_not_guessed():
    fields = _good()
    del fields["buffers"]
    with pytest.raises(KeyError, match="buffers"):
        native.Plan(fields)
