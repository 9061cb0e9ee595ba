"""How the gradient of each parameter travels: how many of its bytes in which wire format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deft_horovod.base.format_bytes import FormatBytes, FormatShares, together
from deft_horovod.base.parameter import WIRE_ITEM_BYTES
from deft_horovod.base.wire_format import EXACT, WireFormat, encoded_bytes
from deft_horovod.plan.contents import contents
from deft_horovod.plan.rules import unit_elements

if TYPE_CHECKING:
    from deft_horovod.plan.plan import Plan


def slot_formats(plan: Plan) -> tuple[FormatShares, ...]:
    """Of each slot, without its header. A slot may lie in several buckets, and one that is exact in
    an encoded bucket."""
    found: list[list[tuple[WireFormat, FormatBytes]]] = [[] for _ in plan.slots]
    for bucket, members in zip(plan.buckets, contents(plan.slots, plan.buckets), strict=True):
        wire = plan.arenas[bucket.arena].wire
        for index in members:
            slot = plan.slots[index]
            begin = max(slot.begin + unit_elements(wire), bucket.begin)
            elements = min(slot.end, bucket.end) - begin
            if elements <= 0:  # nothing but a header
                continue
            one: WireFormat = EXACT if slot.exact else bucket.format
            whole = elements * WIRE_ITEM_BYTES[wire]
            sent = whole if one == EXACT else encoded_bytes(one, elements)
            found[index].append((one, FormatBytes(whole, sent)))
    return tuple(together(parts) for parts in found)
