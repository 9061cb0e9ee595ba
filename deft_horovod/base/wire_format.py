"""Wire formats: in how many bits the values of a message travel. The codec is `csrc/wire`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

WireFormat = Literal["f32", "f16", "bf16", "e4m3", "int8", "int4"]
EXACT: Final[WireFormat] = "f32"

# What a second stage of an encoded message costs where no link was measured, as bytes that a rank
# sends (docs/internals/encoded-link.md).
SECOND_STAGE_BYTES: Final = 131_072

_ALIGNED_BYTES: Final = 4  # the length of an encoded range is a multiple of it
_SCALE_BYTES: Final = 4


@dataclass(frozen=True)
class _Bits:
    """How a range of values is encoded."""

    block: int  # values that share a scale; 0: there are no scales
    bits: int
    # Root of E|Q(g) - g|^2 / |g|^2 for normally distributed values.
    error: float


_LAYOUTS: Final[Mapping[WireFormat, _Bits]] = MappingProxyType(
    {
        "f32": _Bits(0, 32, 0.0),
        "f16": _Bits(0, 16, 2.1e-4),
        "bf16": _Bits(0, 16, 1.7e-3),
        "e4m3": _Bits(256, 8, 2.6e-2),
        "int8": _Bits(256, 8, 6.6e-3),
        "int4": _Bits(64, 4, 0.11),
    }
)


def encoded_bytes(wire_format: WireFormat, elements: int) -> int:
    """Of a range of values that is encoded by itself."""
    layout = _LAYOUTS[wire_format]
    blocks = -(-elements // layout.block) if layout.block else 0
    codes = elements * layout.bits // 8
    if wire_format == "int4":  # a byte holds values that lie half a block apart
        half = layout.block // 2
        codes = elements // layout.block * half + min(elements % layout.block, half)
    whole = blocks * _SCALE_BYTES + codes
    return -(-whole // _ALIGNED_BYTES) * _ALIGNED_BYTES


def error_of(wire_format: WireFormat) -> float:
    """What rounding does to a gradient, relative to its length."""
    return _LAYOUTS[wire_format].error


def rounding_text(wire_format: WireFormat) -> str:
    """The error of a format in words."""
    error = error_of(wire_format)
    return "exact" if not error else f"rounded by {100 * error:.{max(0, _digits(error))}f} %"


def _digits(error: float) -> int:
    """So that two digits of the percentage are seen."""
    return 1 - math.floor(math.log10(100 * error))
