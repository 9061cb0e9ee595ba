import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Task
from deft_horovod.plan.words import (
    carries_text,
    class_text,
    generation_class,
    layer_numbers,
    many,
    ms_text,
    ranges_text,
    ride_text,
)

NAMES = ("conv.weight", "conv.bias", "norm.weight", "scale", "fc.weight", "fc.bias")
PLAN = Plan(
    policy="hand-made",
    period=2,
    buffers=2,
    links=(Link(name="wire"), Link(name="other")),
    arenas=(Arena(dtype="float32", wire="float32", device="cpu", elements=24),),
    slots=tuple(
        Slot(name=name, arena=0, begin=4 * i, end=4 * i + 4) for i, name in enumerate(NAMES)
    ),
    buckets=(Bucket(arena=0, begin=0, end=24),),
    generations=(Generation(bucket=0, first_step=-1, last_step=0, apply_step=1, gated=True),),
    tasks=(
        Task(generation=0, op="reduce_scatter"),
        Task(generation=0, op="all_gather", link=1, step=1, stage="forward"),
    ),
)


@pytest.mark.parametrize(
    ("lateness", "text"),
    [
        ((0, 1, False), "synchronous"),
        ((0, 1, True), "gated"),
        ((1, 1, False), "delay 1"),
        ((0, 3, False), "3 steps merged"),
        ((2, 3, True), "3 steps merged, delay 2, gated"),
    ],
)
def test_classes(lateness, text):
    assert class_text(*lateness) == text


def test_the_class_of_one_that_began_in_the_cycle_before():
    assert generation_class(PLAN.generations[0]) == (1, 2, True)


def test_rides_are_told_from_the_last_gradient_on():
    assert [ride_text(PLAN, task) for task in PLAN.tasks] == [
        "backward of t on link wire (reduce_scatter)",
        "forward of t+1 on link other (all_gather)",
    ]


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([0], "layer 1 (conv.weight)"),
        ([0, 1], "layer 1 (conv)"),
        ([3], "layer 3 (scale)"),
        ([0, 2, 3], "layers 1-3 (conv .. scale)"),
        ([5, 1], "layers 1, 4 (conv .. fc)"),
    ],
)
def test_what_a_bucket_carries(members, text):
    assert carries_text(PLAN, members, layer_numbers(PLAN)) == text


@given(st.lists(st.integers(0, 20), max_size=12))
def test_ranges_read_back_as_the_numbers(numbers):
    back = []
    for part in ranges_text(numbers).split(", ") if numbers else []:
        first, _, last = part.partition("-")
        back += range(int(first), int(last or first) + 1)
    assert back == numbers


def test_quantities():
    assert (many(1, "step"), many(2000, "step"), ms_text(1234.4)) == (
        "1 step",
        "2,000 steps",
        "1.23 ms",
    )
