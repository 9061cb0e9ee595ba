"""Fusion: neighbouring slots of an arena travel as one message.

The rule is that of PyTorch's DistributedDataParallel: gradients in the order in which they become
ready, a small first bucket so that the link starts early, then a fixed size. One difference, unless
`overshoot` is asked for: a bucket is closed before a slot would carry it over its cap, not after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from deft_horovod.plan import Bucket
from deft_horovod.solver.messages.layout import Layout, Span


def fuse(
    layout: Layout,
    *,
    first_bucket_bytes: int,
    bucket_bytes: int,
    groups: Sequence[Sequence[int]] = (),
    overshoot: bool = False,
) -> tuple[Bucket, ...]:
    """Buckets in the order of arenas and positions.

    A slot larger than the cap is a bucket of its own. Each group is one bucket in every arena that
    it touches, whatever its size; the layout has to hold its members side by side.
    """
    group_of = {index: number for number, group in enumerate(groups) for index in group}
    buckets: list[Bucket] = []
    for arena, spans in enumerate(layout.spans):
        item_bytes = layout.item_bytes(arena)
        caps = (first_bucket_bytes // item_bytes, bucket_bytes // item_bytes)
        ends = _ends(spans, caps, group_of, overshoot=overshoot)
        begin = 0
        for end in ends:
            buckets.append(Bucket(arena=arena, begin=begin, end=end))
            begin = end
    return tuple(buckets)


def _ends(
    spans: Sequence[Span], caps: tuple[int, int], group_of: Mapping[int, int], *, overshoot: bool
) -> list[int]:
    """Where the buckets of one arena end, in elements."""
    ends: list[int] = []
    begin = 0
    for before, span in pairwise(spans):
        group, next_group = group_of.get(before.parameter), group_of.get(span.parameter)
        limit = caps[1] if ends else caps[0]
        too_long = before.end - begin >= limit if overshoot else span.end - begin > limit
        too_long = too_long and group is None
        if group != next_group or too_long:
            ends.append(before.end)
            begin = before.end
    return [*ends, spans[-1].end]
