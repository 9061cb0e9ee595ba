"""The shell of every page: its head, its style, and nothing that would have to be fetched."""

from __future__ import annotations

from importlib.resources import files
from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod.report.basics.markup import Content, document, element

# Whatever the page held, nothing would be fetched or run.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_HATCH_PX: Final = 6


def shell(title: str, *content: Content) -> str:
    """A whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", **{"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        element("title", title),
        element("style", _style()),
    )
    body = element("body", _patterns(), element("main", *content))
    return document(element("html", head, body, lang="en"))


def _patterns() -> Element:
    """Hatching of time in which nothing is computed."""
    line = element("path", d=f"M-1,1 l2,-2 M0,{_HATCH_PX} l{_HATCH_PX},-{_HATCH_PX} M5,7 l2,-2")
    pattern = element(
        "pattern",
        element("rect", width=_HATCH_PX, height=_HATCH_PX),
        line,
        id="hatching",
        width=_HATCH_PX,
        height=_HATCH_PX,
        patternUnits="userSpaceOnUse",
    )
    return element(
        "svg", element("defs", pattern), width=0, height=0, class_="patterns", aria_hidden="true"
    )


def _style() -> str:
    return files("deft_horovod.report").joinpath("page.css").read_text(encoding="utf-8")
