from hypothesis import given

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.plan.contents import contents
from deft_horovod.policies import Request
from deft_horovod.profile import Profile
from tests.unit.support.planning import bucket_bytes, make_parameters, requests

DDP = policies.get("ddp")


@given(requests())
def test_a_bucket_reaches_its_cap_with_its_last_gradient_and_not_before(request):
    plan = DDP.plan(request)
    last = {}
    for index, bucket in enumerate(plan.buckets):
        last[bucket.arena] = index
    first_of_arena = set()
    for index, (bucket, inside) in enumerate(
        zip(plan.buckets, contents(plan.slots, plan.buckets), strict=True)
    ):
        is_first = bucket.arena not in first_of_arena
        first_of_arena.add(bucket.arena)
        cap = request.config.first_bucket_bytes if is_first else request.config.bucket_bytes
        cap -= cap % 16
        if index != last[bucket.arena]:
            assert bucket_bytes(plan.arenas, bucket) >= cap
        before_last = max(plan.slots[i].begin for i in inside)
        share = (before_last - bucket.begin) / (bucket.end - bucket.begin)
        assert share * bucket_bytes(plan.arenas, bucket) < cap


def test_buckets_leave_in_the_order_of_readiness_and_are_not_fused():
    request = Request(make_parameters([1000] * 6), Profile.assumed(6), Config(bucket_bytes=8000))
    plan = DDP.plan(request)
    assert plan.links[0].plan_order
    assert not plan.links[0].fusion
    members = contents(plan.slots, plan.buckets)
    order = [index for task in plan.tasks for index in sorted(members[task.generation])[::-1]]
    assert order == [5, 4, 3, 2, 1, 0]
