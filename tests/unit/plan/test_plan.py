import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.errors import PlanError
from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Task
from tests.unit.support.planning import requests

USING_EXECUTOR = sorted(name for name, p in policies.registry().items() if p.uses_executor)
PLANS = st.builds(
    lambda name, request: policies.get(name).plan(request),
    st.sampled_from(USING_EXECUTOR),
    requests(),
)


def small_plan(**changes):
    fields = {
        "policy": "hand-made",
        "links": (Link(name="link"),),
        "arenas": (Arena(dtype="float32", wire="float32", device="cpu", elements=16),),
        "slots": (
            Slot(name="a", arena=0, begin=0, end=8),
            Slot(name="b", arena=0, begin=8, end=16),
        ),
        "buckets": (Bucket(arena=0, begin=0, end=8), Bucket(arena=0, begin=8, end=16)),
        "generations": (Generation(bucket=0), Generation(bucket=1)),
        "tasks": (Task(generation=1), Task(generation=0)),
    }
    return Plan(**{**fields, **changes})


@given(PLANS)
def test_json_round_trip_keeps_plan_and_hash(plan):
    back = Plan.from_json(plan.to_json())
    assert back == plan
    assert back.hash() == plan.hash()
    assert back.difference(plan) is None


def test_the_hash_is_the_same_on_every_machine():
    plan = Plan(policy="stock")
    assert plan.to_json() == (
        '{"arenas":[],"buckets":[],"buffers":1,"generations":[],"links":[],"period":1,'
        '"policy":"stock","prediction":null,"second_stage_bytes":131072,"slots":[],"tasks":[],"version":2}'
    )
    assert plan.hash() == "f3371f14bff9da89eb2506e33341b9bdc8135f9d8b2d0b4d720d14ba6cb332d9"


def test_another_version_is_refused():
    with pytest.raises(PlanError, match="field 'version'"):
        Plan(policy="stock", version=3)


def test_plans_of_the_version_before_load():
    """Nothing in them is encoded."""
    fields = json.loads(small_plan().to_json())
    fields["version"] = 1
    for part in fields["buckets"]:
        del part["format"]
    for part in fields["slots"]:
        del part["exact"]
    assert Plan.from_json(json.dumps(fields)) == small_plan()


def test_a_bad_part_is_named():
    text = small_plan().to_json().replace('"begin":8', '"begin":"x"', 1)
    with pytest.raises(PlanError, match=r"field '\w+\.1\.begin'"):
        Plan.from_json(text)


def test_a_broken_rule_is_a_plan_error_from_json_too():
    text = small_plan().to_json().replace('"elements":16', '"elements":20')
    with pytest.raises(PlanError, match="plan rule 'tiling'"):
        Plan.from_json(text)


def test_save_and_load(tmp_path):
    small_plan().save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == small_plan()
