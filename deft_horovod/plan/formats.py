"""Formats: what of a bucket is encoded, and how many bytes its message takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deft_horovod.base.wire_format import EXACT, encoded_bytes
from deft_horovod.plan.contents import bucket_bytes, contents
from deft_horovod.plan.rules import unit_elements

if TYPE_CHECKING:
    from deft_horovod.base.wire_format import WireFormat
    from deft_horovod.plan.plan import Plan, Slot

Range = tuple[int, int]  # where it begins in the bucket, and its elements


def may_shrink(wire: str, slots: Sequence[Slot]) -> bool:
    """Whether encoding these together would save anything worth it: most of their values are not
    exact."""
    whole = sum(slot.end - slot.begin for slot in slots)
    exact = sum(slot.end - slot.begin for slot in slots if slot.exact)
    return wire == "float32" and 2 * exact < whole


def raw_ranges(plan: Plan, members: Sequence[Sequence[int]], bucket: int) -> tuple[Range, ...]:
    """Of an encoded bucket what travels as it is: headers, slots that are exact, and the padding
    behind slots, which nothing writes but what arrives: one value that is not finite would stay in
    it. Of an exact bucket headers and padding alone. `members`: the slots of each bucket."""
    place = plan.buckets[bucket]
    unit = unit_elements(plan.arenas[place.arena].wire)
    found: list[Range] = []
    for slot in (plan.slots[index] for index in members[bucket]):
        padded = -(-slot.end // unit) * unit
        parts = ((slot.begin, slot.begin + unit), (slot.end, padded))
        as_it_is = slot.exact and place.format != EXACT
        for first, last in [(slot.begin, padded)] if as_it_is else parts:
            begin, end = max(first, place.begin) - place.begin, min(last, place.end) - place.begin
            if begin >= end:
                continue
            if found and sum(found[-1]) == begin:
                begin, _ = found.pop()
            found.append((begin, end - begin))
    return tuple(found)


def rest_ranges(plan: Plan, members: Sequence[Sequence[int]], bucket: int) -> tuple[Range, ...]:
    """What of an encoded bucket is encoded, in the order in which its rests lie; of an exact bucket
    all gradients."""
    found, begin = [], 0
    place = plan.buckets[bucket]
    for start, elements in (*raw_ranges(plan, members, bucket), (place.end - place.begin, 0)):
        if begin < start:
            found.append((begin, start - begin))
        begin = start + elements
    return tuple(found)


def message_bytes(plan: Plan) -> tuple[int, ...]:
    """Of each bucket, as it travels."""
    sizes = list(bucket_bytes(plan))
    if not is_encoded(plan):
        return tuple(sizes)
    members = contents(plan.slots, plan.buckets)
    for index, bucket in enumerate(plan.buckets):
        if bucket.format != EXACT:
            parts = rest_ranges(plan, members, index)
            kept = sizes[index] - sum(encoded_bytes(EXACT, elements) for _, elements in parts)
            sizes[index] = kept + sum(encoded_bytes(bucket.format, n) for _, n in parts)
    return tuple(sizes)


def rest_bytes(plan: Plan, ranks: int = 1) -> int:
    """Memory that so many ranks need together for what rounding leaves: a float32 for each encoded
    value on each of them, and one more on the rank that sums it, where messages have owners."""
    members = contents(plan.slots, plan.buckets)
    total = 0
    for index, bucket in enumerate(plan.buckets):
        if bucket.format == EXACT:
            continue
        values = sum(elements for _, elements in rest_ranges(plan, members, index))
        elements = bucket.end - bucket.begin
        owned = owners(bucket.format, elements, ranks, plan.second_stage_bytes) > 1
        total += encoded_bytes(EXACT, values) * (ranks + owned)
    return total


def owners(wire_format: WireFormat, elements: int, ranks: int, second_stage_bytes: int) -> int:
    """How many ranks sum a part of an encoded message each. All, where a rank then sends so much
    less that a second stage is worth it; with one owner every rank sums all of it.
    docs/internals/encoded-link.md"""
    in_one = encoded_bytes(wire_format, elements) * (ranks - 1)
    return ranks if 2 * in_one // ranks + second_stage_bytes < in_one else 1


def is_encoded(plan: Plan) -> bool:
    """Whether anything travels in fewer bits."""
    return any(bucket.format != EXACT for bucket in plan.buckets)
