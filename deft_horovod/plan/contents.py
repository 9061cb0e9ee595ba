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
    places = sorted((b.arena, b.begin, b.end, number) for number, b in enumerate(buckets))
    first = 0  # in `places`: the first bucket that can still hold a part of the slot at hand
    inside = sorted((s.arena, s.begin, s.end, index) for index, s in enumerate(slots))
    for arena, begin, end, index in inside:
        while places[first][0] < arena or (places[first][0] == arena and places[first][2] <= begin):
            first += 1
        for place in range(first, len(places)):
            of, starts, _, number = places[place]
            if of != arena or starts >= end:
                break
            found[number].append(index)
    return tuple(tuple(members) for members in found)


def tensor_names(plan: Plan, contents: Sequence[Sequence[int]]) -> list[list[str]]:
    """Of each bucket the parameters in it."""
    return [[plan.slots[slot].name for slot in slots] for slots in contents]


def bucket_bytes(plan: Plan) -> tuple[int, ...]:
    return tuple(
        (bucket.end - bucket.begin) * WIRE_ITEM_BYTES[plan.arenas[bucket.arena].wire]
        for bucket in plan.buckets
    )
