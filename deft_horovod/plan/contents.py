"""Contents: which parameters each bucket carries a part of, and how many bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deft_horovod.base.parameter import WIRE_ITEM_BYTES

if TYPE_CHECKING:
    from deft_horovod.plan.plan import Bucket, Plan, Slot


def contents(slots: Sequence[Slot], buckets: Sequence[Bucket]) -> tuple[tuple[int, ...], ...]:
    """For each bucket the indices of its slots, in the order of their positions.

    Expects buckets that tile their arenas, in any order.
    """
    found: list[list[int]] = [[] for _ in buckets]
    by_place = sorted(range(len(buckets)), key=lambda i: (buckets[i].arena, buckets[i].begin))
    place = 0  # in `by_place`: the first bucket that can still hold a part of the slot at hand
    for index in sorted(range(len(slots)), key=lambda i: (slots[i].arena, slots[i].begin)):
        slot = slots[index]
        while _ends_before(buckets[by_place[place]], slot):
            place += 1
        for number in by_place[place:]:
            if buckets[number].arena != slot.arena or buckets[number].begin >= slot.end:
                break
            found[number].append(index)
    return tuple(tuple(members) for members in found)


def _ends_before(bucket: Bucket, slot: Slot) -> bool:
    return bucket.arena < slot.arena or (bucket.arena == slot.arena and bucket.end <= slot.begin)


def tensor_names(plan: Plan, contents: Sequence[Sequence[int]]) -> list[list[str]]:
    """Of each bucket the parameters in it."""
    return [[plan.slots[slot].name for slot in slots] for slots in contents]


def bucket_bytes(plan: Plan) -> tuple[int, ...]:
    return tuple(
        (bucket.end - bucket.begin) * WIRE_ITEM_BYTES[plan.arenas[bucket.arena].wire]
        for bucket in plan.buckets
    )
