"""Bytes of values by the wire format in which they travel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deft_horovod.base.wire_format import WireFormat


@dataclass(frozen=True)
class FormatBytes:
    """Values that travel in one format."""

    bytes: int  # as they are
    message_bytes: int  # in the format


FormatShares = Mapping[WireFormat, FormatBytes]


def together(parts: Iterable[tuple[WireFormat, FormatBytes]]) -> FormatShares:
    """The sums of each format; that of most bytes comes first."""
    sums: dict[WireFormat, FormatBytes] = {}
    for one, part in parts:
        before = sums.get(one, FormatBytes(0, 0))
        sums[one] = FormatBytes(
            before.bytes + part.bytes, before.message_bytes + part.message_bytes
        )
    return dict(sorted(sums.items(), key=lambda entry: -entry[1].bytes))
