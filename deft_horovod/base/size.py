"""Sizes in bytes: read from text, and written as a person would."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

# Decimal units as for network rates, binary ones as for memory; the largest first.
_UNITS: Final = {
    "GiB": 1024**3,
    "GB": 1000**3,
    "MiB": 1024**2,
    "MB": 1000**2,
    "KiB": 1024,
    "kB": 1000,
    "B": 1,
}
_BY_LOWER_CASE: Final = {unit.lower(): factor for unit, factor in _UNITS.items()}
_SIZE: Final = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)\s*")


def parse_size(value: object) -> int:
    """Bytes from an integer, or from text such as '25MB' (decimal) or '1MiB' (binary)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    factor = _BY_LOWER_CASE.get(match[2].lower() or "b") if match else None
    if match is None or factor is None:
        raise ValueError("not a size such as 1048576, '25MB' or '1MiB'")
    size = Fraction(match[1]) * factor
    if size.denominator != 1:
        raise ValueError("not a whole number of bytes")
    return int(size)


def exact_size_text(size_bytes: int) -> str:
    """With the largest unit that leaves a whole number; `parse_size` reads it back."""
    for unit, factor in _UNITS.items():
        if size_bytes and size_bytes % factor == 0:
            return f"{size_bytes // factor}{unit}"
    return str(size_bytes)


def size_text(size_bytes: int) -> str:
    """Rounded, in decimal units."""
    for unit in ("GB", "MB", "kB"):
        if size_bytes >= _UNITS[unit]:
            return f"{size_bytes / _UNITS[unit]:.1f} {unit}"
    return f"{size_bytes} B"
