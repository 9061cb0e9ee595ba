"""The page: all sections, its style, and nothing that would have to be fetched."""

from __future__ import annotations

from importlib.resources import files
from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod.report.basics.findings import Findings
from deft_horovod.report.basics.markup import document, element
from deft_horovod.report.parts.headline import headline, headline_text
from deft_horovod.report.parts.layer_chart import layer_chart
from deft_horovod.report.parts.link_fits import link_fits
from deft_horovod.report.parts.plan_table import plan_table
from deft_horovod.report.parts.provenance import provenance
from deft_horovod.report.parts.staleness_chart import staleness_chart
from deft_horovod.report.parts.step_chart import step_chart
from deft_horovod.report.parts.timelines import timelines

# Whatever the page held, nothing would be fetched or run.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_HATCH_PX: Final = 6


def page(findings: Findings) -> str:
    """The same findings make the same page."""
    sections = [
        step_chart(findings),
        timelines(findings),
        layer_chart(findings),
        staleness_chart(findings),
        link_fits(findings),
        plan_table(findings),
        provenance(findings),
    ]
    title = f"{headline_text(findings)} - deft_horovod report on {findings.inputs.source}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", **{"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        element("title", title),
        element("style", _style()),
    )
    body = element("body", _patterns(), element("main", headline(findings), *sections))
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
