from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.policies import Parameter, Request
from deft_horovod.profile import Profile
from tests.places import ROOT
from tests.unit.support.planning import bucket_bytes, many_parameters, requests

GOLDEN = ROOT / "tests" / "fixtures" / "plan_bucket.json"


def small_model():
    """Two layers, a scalar, an empty tensor, and a half-precision head, as a user would have."""
    return tuple(
        Parameter(name, elements, dtype, wire, "cpu")
        for name, elements, dtype, wire in (
            ("embed.weight", 1000, "float32", "float32"),
            ("scale", 1, "float32", "float32"),
            ("unused", 0, "float32", "float32"),
            ("fc1.weight", 4096, "float32", "float32"),
            ("fc1.bias", 64, "float32", "float32"),
            ("head.weight", 640, "bfloat16", "float32"),
            ("head.bias", 10, "bfloat16", "float32"),
        )
    )


def test_the_golden_plan():
    config = Config(bucket_bytes="10kB", first_bucket_bytes="1KiB")
    members = small_model()
    plan = policies.get("bucket").plan(Request(members, Profile.assumed(len(members)), config))
    golden = Plan.load(GOLDEN)
    assert plan.difference(golden) is None
    assert plan.to_json() + "\n" == GOLDEN.read_text(encoding="utf-8")


@given(requests(grouped=True))
def test_groups_become_one_bucket_each_and_the_rest_keeps_to_the_caps(request):
    plan = policies.get("bucket").plan(request)
    inside = [set(members) for members in contents(plan.slots, plan.buckets)]
    grouped = {index for group in request.groups for index in group}
    for group in request.groups:
        for arena in {plan.slots[index].arena for index in group}:
            assert {i for i in group if plan.slots[i].arena == arena} in inside
    largest = max(request.config.bucket_bytes, request.config.first_bucket_bytes)
    for bucket, members in zip(plan.buckets, inside, strict=True):
        if not members & grouped and len(members) > 1:
            assert bucket_bytes(plan.arenas, bucket) <= largest


@given(requests())
def test_slots_follow_each_other_in_ready_order(request):
    plan = policies.get("bucket").plan(request)
    for arena in range(len(plan.arenas)):
        begins = [
            plan.slots[index].begin
            for index in request.profile.ready_order
            if plan.slots[index].arena == arena
        ]
        assert begins == sorted(begins)


@given(many_parameters(), st.sampled_from([5000, 10**6, 2 * 10**9]))
def test_fewer_messages_than_tensors(members, cap):
    request = Request(
        members,
        Profile.assumed(len(members)),
        Config(bucket_bytes=cap, first_bucket_bytes=cap),
    )
    plan = policies.get("bucket").plan(request)
    total = sum(bucket_bytes(plan.arenas, bucket) for bucket in plan.buckets)
    # Two neighbours that both fitted into one bucket would have been fused.
    assert len(plan.buckets) <= 2 * total / cap + len(plan.arenas)
    assert not plan.links[0].plan_order
