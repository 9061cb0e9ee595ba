import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError, PlanError
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.policies import Request
from deft_horovod.policies.base import complete_order, plan_as_ready
from deft_horovod.profile import Profile
from deft_horovod.solver.messages.fusion import fuse
from deft_horovod.solver.messages.layout import lay_out
from tests.unit.support.planning import assert_carried_once, many_parameters, profiles, requests

USING_EXECUTOR = sorted(name for name, p in policies.registry().items() if p.uses_executor)
# Updates come late, or for several steps at once, without being asked to.
LATE = {"covap", "deft", "sapipe"}


@pytest.mark.parametrize("name", USING_EXECUTOR)
@given(request=requests())
def test_every_plan_is_valid_complete_and_repeatable(name, request):
    policy = policies.get(name)
    plan = policy.plan(request)
    assert plan == policy.plan(request)
    assert plan == Plan.from_json(plan.to_json())
    assert_carried_once(request.parameters, plan.arenas, plan.slots, plan.buckets)
    for op in {task.op for task in plan.tasks}:
        travels = sorted(task.generation for task in plan.tasks if task.op == op)
        assert travels == list(range(len(plan.generations)))
    if name not in LATE:
        assert plan.period == plan.buffers == 1
        assert len(plan.generations) == len(plan.buckets)


@pytest.mark.slow
@pytest.mark.parametrize("name", USING_EXECUTOR)
@settings(max_examples=30)
@given(members=many_parameters())
def test_large_models_are_carried_once(name, members):
    config = Config(bucket_bytes=50_000, partition_bytes=5000)
    request = Request(members, Profile.assumed(len(members)), config)
    plan = policies.get(name).plan(request)
    assert_carried_once(members, plan.arenas, plan.slots, plan.buckets)


@pytest.mark.parametrize("name", USING_EXECUTOR)
def test_a_plan_for_no_parameters_is_empty(name):
    plan = policies.get(name).plan(Request((), Profile.assumed(0), Config()))
    assert (plan.arenas, plan.buckets, plan.tasks) == ((), (), ())


@pytest.mark.parametrize(
    "name", sorted(n for n, p in policies.registry().items() if not p.supports_groups)
)
@settings(max_examples=20)
@given(data=st.data())
def test_groups_are_refused_with_the_alternatives(name, data):
    request = data.draw(requests(grouped=True).filter(lambda request: request.groups))
    with pytest.raises(NotSupportedError, match=f"policy '{name}'") as caught:
        policies.get(name).plan(request)
    assert "'bucket' or 'stock'" in str(caught.value)


@given(st.data())
def test_a_request_whose_profile_is_of_another_model_is_refused(data):
    request = data.draw(requests())
    other = data.draw(profiles(len(request.parameters) + 1))
    with pytest.raises(PlanError, match="does not fit"):
        Request(request.parameters, other, request.config)


@pytest.mark.parametrize("groups", [((0,), (0,)), ((0, 0),), ((2,),), ((-1,),)])
def test_malformed_groups_are_refused(groups):
    members = policies.Parameter("w", 1, "float32", "float32", "cpu")
    with pytest.raises(NotSupportedError, match="not well formed"):
        Request((members,) * 2, Profile.assumed(2), Config(), groups)


@given(st.data())
def test_buckets_are_complete_with_their_last_parameter(data):
    request = data.draw(requests())
    order = data.draw(st.permutations(range(len(request.parameters))))
    layout = lay_out(request.parameters, range(len(order)))
    buckets = fuse(layout, first_bucket_bytes=1024, bucket_bytes=4096)
    missing = [set(inside) for inside in contents(layout.slots, buckets)]
    complete = []
    for index in order:
        for number, inside in enumerate(missing):
            if index in inside:
                inside.remove(index)
                complete += [] if inside else [number]
    assert complete_order(layout.slots, buckets, order) == complete
    plan = plan_as_ready("hand-made", layout, buckets, order)
    assert [task.generation for task in plan.tasks] == complete
    assert not plan.links[0].plan_order
