import pytest

from deft_horovod.errors import PlanError
from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Task
from deft_horovod.plan.contents import bucket_bytes
from deft_horovod.profile import FormatCost, LinkCost, LinkProfile, Profile
from deft_horovod.solver.predict.costs import check_fit, link_costs, task_times_us
from tests.unit.plan.test_formats import plan_of

ALONE = LinkCost(alpha_us=10.0, beta_us_per_byte=1.0)
BUSY = LinkCost(alpha_us=20.0, beta_us_per_byte=2.0)


def plan_on(*links):
    """Two messages of 16 and 32 bytes, on the given links of three."""
    return Plan(
        policy="hand-made",
        links=tuple(Link(name=name) for name in ("a", "b", "spare")),
        arenas=(Arena(dtype="float16", wire="float16", device="cpu", elements=24),),
        slots=(Slot(name="x", arena=0, begin=0, end=8), Slot(name="y", arena=0, begin=8, end=24)),
        buckets=(Bucket(arena=0, begin=0, end=8), Bucket(arena=0, begin=8, end=24)),
        generations=(Generation(bucket=0), Generation(bucket=1)),
        tasks=tuple(Task(generation=g, link=link) for g, link in enumerate(links)),
    )


def profile_with(*links):
    return Profile.assumed(2).model_copy(update={"links": links})


A = LinkProfile(name="a", cost=ALONE, busy_cost=BUSY)
B = LinkProfile(name="b", cost=ALONE)


def test_sizes_are_those_on_the_wire():
    assert bucket_bytes(plan_on(0, 0)) == (16, 32)


def test_alone_a_link_costs_what_it_costs_alone():
    assert task_times_us(plan_on(0, 0), profile_with(B, A)) == (26.0, 42.0)


def test_beside_another_one_it_costs_what_was_measured_so():
    assert task_times_us(plan_on(0, 1), profile_with(A, B)) == (52.0, 42.0)


def test_a_link_that_carries_nothing_needs_no_measurement():
    assert link_costs(plan_on(0, 0), profile_with(A))[2].alpha_us == 0.0
    with pytest.raises(PlanError, match="what link 'b' costs") as caught:
        task_times_us(plan_on(0, 1), profile_with(A))
    assert "measured links: 'a'" in str(caught.value)


def test_plan_and_profile_have_to_be_of_one_model():
    check_fit(plan_on(0, 0), profile_with(A))
    check_fit(Plan(policy="stock"), profile_with(A))
    with pytest.raises(PlanError, match="a plan of 2 parameters"):
        check_fit(plan_on(0, 0), Profile.assumed(3))


def test_an_encoded_message_costs_what_was_measured_in_its_format():
    plan = plan_of([1000, 1000], [False, False], [0.5], "int8")
    (size, other) = bucket_bytes(plan)
    quick = FormatCost(format="int8", cost=LinkCost(alpha_us=3.0, beta_us_per_byte=0.25))
    link = LinkProfile(name="horovod", cost=ALONE, formats=(quick,))
    assert task_times_us(plan, profile_with(link)) == (3 + size / 4, 3 + other / 4)
    with pytest.raises(PlanError, match="what link 'horovod' costs in int8") as caught:
        task_times_us(plan, profile_with(LinkProfile(name="horovod", cost=ALONE)))
    assert "'horovod' (f32)" in str(caught.value)
