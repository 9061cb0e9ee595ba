"""What a field may hold. Every function raises ValueError for what it may not."""

from __future__ import annotations

from typing import Final

from deft_horovod.base.size import parse_size
from deft_horovod.capacity.input.duration import parse_duration

_MOST: Final = 10**15


def count(text: str) -> int:
    """A whole number from 1 on; underscores divide it."""
    digits = text.replace("_", "")
    if not digits.isdecimal() or not 0 < int(digits) <= _MOST:
        raise ValueError("not a whole number from 1 on")
    return int(digits)


def price(text: str) -> float:
    found = _number(text)
    if found < 0.0:
        raise ValueError("a price is 0 or more; a machine that costs nothing is one's own")
    return found


def positive(text: str) -> float:
    found = _number(text)
    if found <= 0.0:
        raise ValueError("not more than 0")
    return found


def duration_s(text: str) -> int:
    """Whole seconds, rounded up."""
    return -(-parse_duration(text) // 1)


def duration_us(text: str) -> float:
    found = float(parse_duration(text) * 1_000_000)
    if not found:
        raise ValueError("no time at all")
    return found


def size_bytes(text: str) -> int:
    return parse_size(int(text) if text.isdecimal() else text)


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise ValueError("not a number") from None
    if not abs(found) < _MOST:
        raise ValueError("not a number that can be counted with")
    return found
