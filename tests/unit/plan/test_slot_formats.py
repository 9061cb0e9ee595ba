"""How each parameter travels adds up to what messages have."""

from hypothesis import given

from deft_horovod.base.format_bytes import FormatBytes
from deft_horovod.base.wire_format import EXACT, encoded_bytes
from deft_horovod.plan.contents import contents
from deft_horovod.plan.formats import message_bytes, raw_ranges
from deft_horovod.plan.slot_formats import slot_formats
from tests.unit.plan.test_formats import plan_of, plans


def test_of_a_slot_in_two_buckets_both_are_told():
    plan = plan_of([4000, 5], [False, True], [0.5], "int8")
    plan = plan.model_copy(
        update={"buckets": (plan.buckets[0], plan.buckets[1].model_copy(update={"format": EXACT}))}
    )
    cut = plan.buckets[0].end - 4
    weight, bias = slot_formats(plan)
    assert weight == {
        "f32": FormatBytes(4 * (4000 - cut), 4 * (4000 - cut)),
        "int8": FormatBytes(4 * cut, encoded_bytes("int8", cut)),
    }
    assert bias == {"f32": FormatBytes(20, 20)}


def test_exact_slots_stay_exact_in_an_encoded_bucket():
    weight, bias = slot_formats(plan_of([1000, 3], [False, True], [], "int4"))
    assert [*weight] == ["int4"]
    assert bias == {"f32": FormatBytes(12, 12)}


def test_a_narrow_arena_counts_with_its_own_bytes():
    (slot,) = slot_formats(plan_of([1000], [False], [], "f32", wire="float16"))
    assert slot == {"f32": FormatBytes(2000, 2000)}


@given(plans())
def test_slots_and_headers_are_all_that_travels(plan):
    found = slot_formats(plan)
    assert len(found) == len(plan.slots)
    for slot, shares in zip(plan.slots, found, strict=True):
        assert sum(part.bytes for part in shares.values()) == 4 * (slot.end - slot.begin - 4)
        assert not (slot.exact and shares.keys() - {EXACT})
    sent = sum(part.message_bytes for shares in found for part in shares.values())
    members = contents(plan.slots, plan.buckets)
    own = sum(4 * n for i in range(len(plan.buckets)) for _, n in raw_ranges(plan, members, i))
    exact = sum(4 * (slot.end - slot.begin - 4) for slot in plan.slots if slot.exact)
    if all(bucket.format != EXACT for bucket in plan.buckets):
        assert sent == sum(message_bytes(plan)) - own + exact
