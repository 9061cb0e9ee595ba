"""Labels inside bars: shown only on screens that are wide enough for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

# Widths of a chart in pixels at which `page.css` shows or hides labels.
WIDTHS: Final = (300, 450, 600, 750, 900, 1050)
# Of a letter at the size of labels (12 px), at its widest.
_LETTER_PX: Final = 7.5
_AIR_PX: Final = 6.0


def fitting(texts: Sequence[str], share: float) -> Iterator[tuple[str, str]]:
    """(text, classes) for each text that fits into that share of some chart; of those that fit
    the first one is shown.

    Expects the longest text first.
    """
    until: int | None = None
    for text in texts:
        needed = (len(text) * _LETTER_PX + _AIR_PX) / share if share > 0.0 else float("inf")
        first = next((width for width in WIDTHS if width >= needed), None)
        if first is None or (until is not None and first >= until):
            continue
        yield text, f"from-{first}" + (f" to-{until}" if until is not None else "")
        until = first
