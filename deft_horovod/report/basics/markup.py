"""Elements of HTML and SVG. Whatever text is put into them is escaped."""

from __future__ import annotations

import re
from typing import Final
from xml.etree.ElementTree import Element, tostring

Content = Element | str | None

# What a page cannot hold: control characters, halves of surrogate pairs.
_UNFIT: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def element(tag: str, *content: Content, **attributes: object) -> Element:
    """`class_` stands for `class`, `aria_label` for `aria-label`; what is None is left out."""
    made = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            made.set(name.rstrip("_").replace("_", "-"), _text(value))
    for piece in content:
        if isinstance(piece, str):
            _append_text(made, _text(piece))
        elif piece is not None:
            made.append(piece)
    return made


def svg(*content: Content, height: int, label: str, **attributes: object) -> Element:
    """A chart as wide as there is room. Places across are percentages, all else is in pixels, so
    that text has the same size on every screen."""
    return element(
        "svg", *content, width="100%", height=height, role="img", aria_label=label, **attributes
    )


def document(root: Element) -> str:
    return "<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def percent(share: float) -> str:
    return f"{100 * share:.3f}".rstrip("0").rstrip(".") + "%"


def _text(value: object) -> str:
    return _UNFIT.sub("\ufffd", str(value))


def _append_text(to: Element, text: str) -> None:
    if len(to):
        last = to[-1]
        last.tail = (last.tail or "") + text
    else:
        to.text = (to.text or "") + text
