"""Partition: an arena cut into messages of at most a given size.

Large gradients are cut so that an urgent one never waits long behind one that is not (Peng et al.,
"A Generic Communication Scheduler for Distributed DNN Training Acceleration", SOSP 2019; Jayarajan
et al., "Priority-based Parameter Propagation for Distributed DNN Training", MLSys 2019). Small
neighbours share a message, because each message costs a start-up time.
"""

from __future__ import annotations

from collections.abc import Sequence

from deft_horovod.plan import Bucket
from deft_horovod.plan.rules import ALIGN_BYTES
from deft_horovod.solver.messages.layout import Layout, Span


def partition(
    layout: Layout, *, partition_bytes: int, classes: Sequence[object] = ()
) -> tuple[Bucket, ...]:
    """Buckets in the order of arenas and positions.

    Cuts fall at multiples of 16 bytes; the pieces of one slot differ by at most 16 bytes. Slots
    whose entries in `classes` differ (one entry per parameter; none: all alike) share no bucket.
    """
    buckets: list[Bucket] = []
    for arena, spans in enumerate(layout.spans):
        unit = ALIGN_BYTES // layout.item_bytes(arena)
        begin = 0
        for end in _ends(spans, unit, max(1, partition_bytes // ALIGN_BYTES), classes):
            buckets.append(Bucket(arena=arena, begin=begin, end=end))
            begin = end
    return tuple(buckets)


def _ends(spans: Sequence[Span], unit: int, cap_units: int, classes: Sequence[object]) -> list[int]:
    """Where the buckets of one arena end, in elements."""
    ends: list[int] = []
    begin = 0  # of the bucket that is being filled
    before: Span | None = None
    for span in spans:
        alike = (
            before is None or not classes or classes[before.parameter] == classes[span.parameter]
        )
        if begin < span.begin and (not alike or span.end - begin > cap_units * unit):
            ends.append(span.begin)
            begin = span.begin
        if span.end - begin > cap_units * unit:
            units = (span.end - span.begin) // unit
            ends += even_ends(span, unit, -(-units // cap_units))
            begin = span.end
        before = span
    if not ends or ends[-1] != spans[-1].end:
        ends.append(spans[-1].end)
    return ends


def even_ends(span: Span, unit: int, pieces: int) -> list[int]:
    """The ends of the pieces of one slot, as even as cuts at multiples of `unit` can be."""
    units = (span.end - span.begin) // unit
    return [span.begin + units * number // pieces * unit for number in range(1, pieces + 1)]
