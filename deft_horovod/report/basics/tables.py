"""Tables that scroll inside themselves where they are wider than the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod.report.basics.markup import Content, element

_MOST_ROWS: Final = 30  # of a table that is open from the beginning


@dataclass(frozen=True)
class Column:
    """What stands above a column, and what it holds."""

    title: str
    number: bool = False
    sentence: bool = False  # that needs some width to be read


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Content]],
    *,
    folded: bool = False,
) -> Element:
    """The first cell of a row names it. Long tables have to be unfolded."""
    head = element("tr", *(element("th", c.title, scope="col", class_=_kind(c)) for c in columns))
    body = [_row(columns, row) for row in rows]
    inside = element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", head),
            element("tbody", *body),
        ),
        class_="scroll",
        # So that a keyboard can scroll it.
        tabindex=0,
        role="region",
        aria_label=caption,
    )
    if not folded and len(rows) <= _MOST_ROWS:
        return inside
    return element("details", element("summary", f"{caption} ({len(rows):,} rows)"), inside)


def _row(columns: Sequence[Column], row: Sequence[Content]) -> Element:
    first, *others = row
    cells = [element("th", first, scope="row", class_=_kind(columns[0]))]
    cells += [
        element("td", cell, class_=_kind(column))
        for column, cell in zip(columns[1:], others, strict=True)
    ]
    return element("tr", *cells)


def _kind(column: Column) -> str | None:
    return "number" if column.number else "sentence" if column.sentence else None
