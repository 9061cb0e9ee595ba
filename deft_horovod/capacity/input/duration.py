"""Durations: read from text such as '90s', '15min' or '36h', and written as a person would."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

_UNITS: Final[Mapping[str, Fraction]] = MappingProxyType(
    {
        "d": Fraction(86_400),
        "h": Fraction(3_600),
        "min": Fraction(60),
        "s": Fraction(1),
        "ms": Fraction(1, 1000),
    }
)
_DURATION: Final = re.compile(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*(d|h|min|s|ms)\s*")
_HOUR_S, _MINUTE_S = 3_600, 60


def parse_duration(text: str) -> Fraction:
    """In seconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time such as 90s, 15min, 36h or 2d")
    return Fraction(match[1]) * _UNITS[match[2]]


def duration_text(time_s: int) -> str:
    """Rounded to minutes where it is hours."""
    if time_s < 0:
        return "-" + duration_text(-time_s)
    if time_s < _MINUTE_S:
        return f"{time_s} s"
    if time_s < _HOUR_S:
        minutes, seconds = divmod(time_s, _MINUTE_S)
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod((time_s + _MINUTE_S // 2) // _MINUTE_S, _MINUTE_S)
    return f"{hours} h {minutes:02} min"
