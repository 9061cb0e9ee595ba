"""Ticks of axes: round numbers that leave room for their labels on a phone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod.report.basics.markup import element, percent

_MOST: Final = 5
_ROUND: Final = (1.0, 2.0, 5.0)
_FEWEST_POWERS: Final = 2  # of ten on an axis
_EDGE: Final = 0.06  # of the width: nearer to an edge a label would leave the chart


def ticks(end: float, most: int = _MOST) -> list[float]:
    """From 0 on, at most so many steps apart; none where there is no way to go."""
    if not end > 0.0 or not math.isfinite(end):
        return [0.0]
    reach = end * (1 + 1e-9)  # a tick at the very end is not lost by rounding
    decade = 10.0 ** math.floor(math.log10(end / most))
    step = next(
        (decade * factor for factor in (*_ROUND, 10.0) if reach / (decade * factor) < most + 1),
        10.0 * decade,
    )
    return [index * step for index in range(int(reach / step) + 1)]


def log_ticks(low: float, high: float, most: int = _MOST) -> list[float]:
    """Powers of ten between two numbers; 2 and 5 of each where these are too few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = [10.0**power for power in range(first, last + 1)]
    powers = [value for value in decades if low <= value <= high]
    if len(powers) >= _FEWEST_POWERS:
        return powers[:: math.ceil(len(powers) / most)]
    finer = [value * factor for value in decades for factor in _ROUND]
    inside = [value for value in finer if low <= value <= high]
    return inside[:: max(1, math.ceil(len(inside) / most))]


def x_ticks(places: Sequence[tuple[float, str]], height: int, text_y: int) -> Element:
    """Lines of that height with labels; places are shares of the width."""
    lines = [element("line", x1=percent(x), x2=percent(x), y1=0, y2=height) for x, _ in places]
    labels = [
        element("text", label, x=percent(x), y=text_y, text_anchor=_anchor(x))
        for x, label in places
    ]
    return element("g", *lines, *labels, class_="axis")


def ms_places(end_us: float) -> list[tuple[float, str]]:
    """Of a linear axis in milliseconds; the first label says so."""
    return [
        (1000 * value / end_us if end_us > 0.0 else 0.0, f"{value:,.10g}{'' if value else ' ms'}")
        for value in ticks(end_us / 1000)
    ]


def _anchor(x: float) -> str:
    return "start" if x < _EDGE else "end" if x > 1.0 - _EDGE else "middle"
