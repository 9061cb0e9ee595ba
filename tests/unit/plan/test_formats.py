"""What of a bucket is encoded; the sizes are those that the extension makes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.wire_format import encoded_bytes
from deft_horovod.errors import PlanError
from deft_horovod.plan import Bucket, Generation, Link, Plan, Task
from deft_horovod.plan.contents import bucket_bytes, contents
from deft_horovod.plan.formats import (
    is_encoded,
    message_bytes,
    owners,
    raw_ranges,
    rest_bytes,
    rest_ranges,
)
from deft_horovod.runtime.extension import native
from deft_horovod.solver.messages.layout import lay_out
from tests.unit.support.planning import make_parameters


def plan_of(sizes, exact, cuts, wire_format, *, wire="float32", plan_order=True):
    """All slots side by side, cut into buckets at these shares."""
    parameters = [
        replace(parameter, exact=flag)
        for parameter, flag in zip(make_parameters(sizes, wire=wire), exact, strict=True)
    ]
    layout = lay_out(parameters, range(len(parameters)))
    whole = layout.arenas[0].elements
    unit = 16 // (4 if wire == "float32" else 2)
    inner = {int(whole * cut) // unit * unit for cut in cuts} - {0, whole}
    ends = [*sorted(inner), whole]
    buckets = tuple(
        Bucket(arena=0, begin=begin, end=end, format=wire_format)
        for begin, end in zip([0, *ends], ends, strict=False)
    )
    return Plan(
        policy="unit",
        links=(Link(name="horovod", plan_order=plan_order),),
        arenas=layout.arenas,
        slots=layout.slots,
        buckets=buckets,
        generations=tuple(Generation(bucket=index) for index in range(len(buckets))),
        tasks=tuple(Task(generation=index) for index in range(len(buckets))),
    )


@st.composite
def plans(draw):
    sizes = draw(st.lists(st.integers(0, 700), min_size=1, max_size=6))
    exact = [draw(st.booleans()) for _ in sizes]
    cuts = draw(st.lists(st.floats(0, 1), max_size=3))
    return plan_of(sizes, exact, cuts, draw(st.sampled_from(["f32", "f16", "int8", "int4"])))


@given(plans())
def test_a_bucket_is_what_is_raw_and_what_is_encoded(plan):
    members = contents(plan.slots, plan.buckets)
    for index, bucket in enumerate(plan.buckets):
        raw = raw_ranges(plan, members, index)
        parts = sorted([*raw, *rest_ranges(plan, members, index)])
        reached = 0
        for begin, elements in parts:
            assert begin == reached
            reached += elements
        assert reached == bucket.end - bucket.begin
        inside = {bucket.begin + begin + i for begin, count in raw for i in range(count)}
        encoded = set(range(bucket.begin, bucket.end)) - inside
        rounds = bucket.format != "f32"
        values = {
            i
            for slot in (plan.slots[i] for i in members[index])
            for i in range(slot.begin + 4, slot.begin if slot.exact and rounds else slot.end)
        }
        assert encoded == values & set(range(bucket.begin, bucket.end))


@given(plans())
def test_messages_and_rests_are_as_long_as_those_of_the_extension(plan):
    members = contents(plan.slots, plan.buckets)
    encodings = [
        native.Encoding(bucket.format, bucket.end - bucket.begin, raw_ranges(plan, members, index))
        for index, bucket in enumerate(plan.buckets)
    ]
    assert list(message_bytes(plan)) == [encoding.bytes for encoding in encodings]
    assert rest_bytes(plan) == sum(4 * encoding.rest.numel() for encoding in encodings)


def test_exact_plans_send_what_they_hold():
    plan = plan_of([300, 20], [False, False], [0.5], "f32")
    assert not is_encoded(plan)
    assert message_bytes(plan) == bucket_bytes(plan)
    assert rest_bytes(plan) == rest_bytes(plan, 4) == 0


@pytest.mark.parametrize(("ranks", "shares"), [(1, 1), (2, 2), (3, 3), (4, 5)])
def test_with_more_ranks_one_of_them_keeps_what_is_left_of_sums(ranks, shares):
    """A message of 100 kB is worth two stages from four ranks on."""
    values = 100_000
    plan = plan_of([values], [False], [], "int8")
    assert rest_bytes(plan, ranks) == 4 * values * shares


@given(st.integers(0, 1 << 24), st.integers(1, 64), st.integers(0, 1 << 24))
def test_there_are_owners_where_they_save_more_than_a_second_stage_costs(elements, ranks, second):
    size = encoded_bytes("int8", elements)
    in_one, in_two = size * (ranks - 1), 2 * size * (ranks - 1) / ranks
    found = owners("int8", elements, ranks, second)
    assert found in (1, ranks)
    if in_one - in_two > second + 1:
        assert found == ranks
    if in_one - in_two < second - 1 or ranks <= 2:
        assert found == 1 or ranks == 1


def test_what_is_exact_is_not_rounded():
    plan = plan_of([300, 20], [True, True], [], "int8")
    assert is_encoded(plan)
    assert message_bytes(plan) == bucket_bytes(plan)


@pytest.mark.parametrize(
    ("change", "text"),
    [({"wire": "float16"}, "not of float32"), ({"plan_order": False}, "a way that cannot be")],
)
def test_rules_refuse_what_cannot_be_encoded(change, text):
    with pytest.raises(PlanError, match=text):
        plan_of([300], [False], [], "int8", **change)
