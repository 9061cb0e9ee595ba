import pytest

from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Task

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

task  message     bucket  bytes   leaves from  applied                  parameters
0     all_reduce  0       384 B   backward 0   end of step 0            p0, p1, p2, ... p5 (6)
1     all_reduce  1       3.7 kB  forward 1    before use in forward 1  large"""


def test_a_person_can_read_it():
    assert PLAN.describe() == TEXT.replace("HASH", PLAN.hash()[:12])


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
