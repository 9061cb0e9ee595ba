"""Rates of networks in bits per second: read from text, and written as a person would."""

from __future__ import annotations

import re
from fractions import Fraction
from types import MappingProxyType
from typing import Final

# Decimal, as all rates of networks; the largest first.
_UNITS: Final = MappingProxyType(
    {"tbit": 10**12, "gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "bit": 1}
)
_RATE: Final = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([a-z]+)\s*")


def parse_rate(text: str) -> float:
    """Bits per second from text such as '10gbit' or '500mbit'; 'gbps' and 'gbit/s' are the same."""
    match = _RATE.fullmatch(text.lower().replace("/s", ""))
    factor = _UNITS.get(_whole_name(match[2])) if match else None
    if match is None or factor is None:
        raise ValueError(f"{text.strip()!r} is not a rate such as 10gbit or 500mbit")
    rate = Fraction(match[1]) * factor
    if not rate:
        raise ValueError("a link of rate 0 carries nothing")
    return float(rate)


def rate_text(bits_per_s: float) -> str:
    """With the largest unit that leaves at least 1; `parse_rate` reads it back."""
    unit = next((unit for unit, factor in _UNITS.items() if bits_per_s >= factor), "bit")
    return f"{bits_per_s / _UNITS[unit]:.9f}".rstrip("0").rstrip(".") + unit


def _whole_name(unit: str) -> str:
    """Of a unit that may be written as 'gbps' or 'gbits'."""
    if unit.endswith("bps"):
        return f"{unit.removesuffix('ps')}it"
    return unit.removesuffix("s")
