"""The wire formats of a plan in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from deft_horovod.base.size import size_text
from deft_horovod.base.wire_format import EXACT, WireFormat, rounding_text
from deft_horovod.plan.contents import bucket_bytes
from deft_horovod.plan.formats import is_encoded, message_bytes, rest_bytes

if TYPE_CHECKING:
    from deft_horovod.plan.plan import Plan


def bytes_by_format(plan: Plan) -> dict[WireFormat, tuple[int, int]]:
    """Of the buckets in each format: their bytes as float32 or whatever else the arena has, and
    those of their messages."""
    whole: Counter[WireFormat] = Counter()
    sent: Counter[WireFormat] = Counter()
    for bucket, size, message in zip(
        plan.buckets, bucket_bytes(plan), message_bytes(plan), strict=True
    ):
        whole[bucket.format] += size
        sent[bucket.format] += message
    return {one: (whole[one], sent[one]) for one in sorted(whole, key=lambda f: -whole[f])}


def formats_lines(plan: Plan) -> list[str]:
    """How many bytes travel in which format, and what that needs; nothing where all are exact."""
    if not is_encoded(plan):
        return []
    parts = [
        f"{size_text(whole)} as {one} ({size_text(sent)}, {rounding_text(one)})"
        for one, (whole, sent) in bytes_by_format(plan).items()
    ]
    memory = size_text(rest_bytes(plan))
    needs = f"{memory} of memory, beyond 2 ranks at most {memory} more in all"
    return [
        f"wire formats: {'; '.join(parts)}",
        f"what rounding leaves is sent with the next gradients: {needs}",
    ]


def formats_text(plan: Plan) -> str:
    """The same in a few words; nothing where all are exact."""
    if not is_encoded(plan):
        return ""
    found = bytes_by_format(plan)
    total = sum(whole for whole, _ in found.values())
    parts = [
        f"{100 * whole / total:.0f} % of the bytes as {one}"
        for one, (whole, _) in found.items()
        if one != EXACT
    ]
    return ", ".join(parts)
