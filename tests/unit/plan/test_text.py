import pytest
from hypothesis import given

from deft_horovod.plan import (
    Arena,
    Bucket,
    Generation,
    Link,
    Plan,
    Prediction,
    Slot,
    Staleness,
    Task,
)
from tests.unit.support.random_plans import plans

PLAN = Plan(
    policy="hand-made",
    links=(Link(name="wire", credit_bytes=16_000_000, credit_messages=1),),
    arenas=(Arena(dtype="bfloat16", wire="float32", device="cuda", elements=1024),),
    slots=(
        *(Slot(name=f"p{i}", arena=0, begin=i * 16, end=i * 16 + 16) for i in range(6)),
        Slot(name="large", arena=0, begin=96, end=1024),
    ),
    buckets=(Bucket(arena=0, begin=0, end=96), Bucket(arena=0, begin=96, end=1024)),
    generations=(Generation(bucket=0), Generation(bucket=1, gated=True)),
    tasks=(Task(generation=0), Task(generation=1, step=1, stage="forward")),
)


TEXT = """\
plan 'hand-made' (HASH): period 1 step, 1 buffer
7 parameters in 2 buckets, 2 messages a cycle, 4.1 kB a buffer
link 0: 'wire', messages leave in the order of the plan, at most 16.0 MB and 1 message in flight
arena 0: bfloat16 on cuda, sent as float32, 4.1 kB

bucket 0: 384 B, layers 1-6 (p0 .. p5), synchronous, rides backward of t on link wire
bucket 1: 3.7 kB, layer 7 (large), gated, rides forward of t+1 on link wire

order on link wire, from the beginning of each window:
  backward of step 0: bucket 0
  forward of step 1: bucket 1"""

PREDICTION = Prediction(
    compute_us=200_000.0,
    step_us=206_000.0,
    bound_us=200_000.0,
    status="optimal",
    staleness=(
        Staleness(delay=0, merged=1, bytes=3000),
        Staleness(delay=0, merged=1, gated=True, bytes=900),
        Staleness(delay=1, merged=4, bytes=100),
    ),
    updates_per_step=0.98,
)
PREDICTED = """\
predicted: compute 200.00 ms, step 206.00 ms, exposed 6.00 ms
no plan within the limits is below 200.00 ms, this one is 3.0% above (optimal)
updates per step: 0.98
  synchronous              3.0 kB  75.0%  ##############################
  gated                     900 B  22.5%  #########
  4 steps merged, delay 1   100 B   2.5%  #
"""


def test_a_person_can_read_it():
    assert PLAN.describe() == TEXT.replace("HASH", PLAN.hash()[:12])


def test_what_is_predicted_comes_first():
    plan = PLAN.model_copy(update={"prediction": PREDICTION})
    head, rest = TEXT.replace("HASH", plan.hash()[:12]).split("\n", 1)
    assert plan.describe() == f"{head}\n{PREDICTED}{rest}"


def test_the_steps_of_a_period_can_have_different_fates():
    """A large parameter in two parts; the first one travels half now and half over another link."""
    plan = Plan(
        policy="hand-made",
        period=3,
        buffers=3,
        links=(Link(name="wire", plan_order=False), Link(name="other", plan_order=False)),
        arenas=(Arena(dtype="float32", wire="float32", device="cpu", elements=16),),
        slots=(Slot(name="fc.weight", arena=0, begin=0, end=16),),
        buckets=(Bucket(arena=0, begin=0, end=8), Bucket(arena=0, begin=8, end=16)),
        generations=(
            Generation(bucket=0),
            Generation(bucket=0, first_step=1, last_step=2, apply_step=4),
            Generation(bucket=1, last_step=2, apply_step=2),
        ),
        tasks=(
            Task(generation=0, op="reduce_scatter"),
            Task(generation=0, op="all_gather", link=1),
            Task(generation=1, step=3, stage="forward"),
            Task(generation=2, step=2),
        ),
    )
    assert plan.describe().endswith(
        """
bucket 0: 32 B, layer 1 (fc.weight) part 1 of 2:
  step 0: synchronous, rides backward of t on link wire (reduce_scatter), \
then backward of t on link other (all_gather)
  steps 1 to 2: 2 steps merged, delay 2, rides forward of t+1 on link wire
bucket 1: 32 B, layer 1 (fc.weight) part 2 of 2, 3 steps merged, rides backward of t on link wire"""
    )


@given(plans())
def test_every_bucket_of_any_plan_has_its_line(plan):
    lines = plan.describe().splitlines()
    for number in range(len(plan.buckets)):
        assert sum(line.startswith(f"bucket {number}: ") for line in lines) == 1


def test_an_empty_plan_says_so():
    assert "nothing travels through the executor" in Plan(policy="stock").describe()


def test_no_difference():
    assert PLAN.difference(PLAN.model_copy()) is None


def changed(field, index, **changes):
    items = list(getattr(PLAN, field))
    items[index] = items[index].model_copy(update=changes)
    return PLAN.model_copy(update={field: tuple(items)})


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (PLAN.model_copy(update={"policy": "other"}), "policy: 'hand-made' here, 'other' there"),
        (PLAN.model_copy(update={"period": 3}), "period: 1 here, 3 there"),
        (
            changed("links", 0, credit_bytes=5),
            "links[0].credit_bytes ('wire'): 16000000 here, 5 there",
        ),
        (changed("arenas", 0, wire="float16"), "arenas[0].wire: 'float32' here, 'float16' there"),
        (changed("slots", 6, begin=100), "slots[6].begin ('large'): 96 here, 100 there"),
        (changed("slots", 2, name="q"), "slots[2].name: 'p2' here, 'q' there"),
        (changed("buckets", 1, end=2), "buckets[1].end: 1024 here, 2 there"),
        (changed("generations", 1, gated=False), "generations[1].gated: True here, False there"),
        (changed("tasks", 0, step=4), "tasks[0].step: 0 here, 4 there"),
        (PLAN.model_copy(update={"tasks": PLAN.tasks[:1]}), "tasks: 2 here, 1 there"),
    ],
)
def test_a_planted_difference_is_found(other, text):
    assert PLAN.difference(other) == text
    assert other.difference(PLAN) is not None
