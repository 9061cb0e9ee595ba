"""How much of the gradients is applied how late."""

from __future__ import annotations

from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod.base.size import size_text
from deft_horovod.plan import Plan, Staleness
from deft_horovod.plan.staleness import mean_staleness, staleness, updates_per_step
from deft_horovod.plan.words import class_text
from deft_horovod.report.basics.findings import Findings
from deft_horovod.report.basics.markup import element, percent, svg
from deft_horovod.report.basics.tables import Column, table

_ROW_PX: Final = 42
_BAR_TOP_PX, _BAR_PX = 18, 16


def staleness_chart(findings: Findings) -> Element | None:
    """None: there is no plan, so that every update is in time."""
    plan = findings.inputs.plan
    kinds = shares(plan) if plan is not None else []
    if plan is None or not kinds:
        return None
    classes = [kind for kind, _ in kinds]
    text = (
        "Share of a step's gradients by how they are applied: in their own step (synchronous; "
        "gated ones before their parameters are used next), some steps later (delay), or as the "
        "sum of several steps (merged). From a gradient to its update pass "
        f"{mean_staleness(classes):.2f} steps, the mean over the bytes; a parameter is updated "
        f"{updates_per_step(plan):.2f} times a step."
    )
    return element(
        "section",
        element("h2", "Staleness"),
        element("p", text),
        element("figure", _drawn(kinds)),
        _table(kinds),
    )


def shares(plan: Plan) -> list[tuple[Staleness, float]]:
    """The freshest first, with the share of each; nothing where nothing travels."""
    kinds = staleness(plan)
    total = sum(kind.bytes for kind in kinds)
    return [(kind, kind.bytes / total) for kind in kinds] if total else []


def _drawn(kinds: list[tuple[Staleness, float]]) -> Element:
    parts = [
        element(
            "g",
            element("text", f"{_name(kind)}: {share:.1%}", x=0, y=_BAR_TOP_PX - 5),
            element("rect", x=0, y=_BAR_TOP_PX, width="100%", height=_BAR_PX, class_="groove"),
            element(
                "rect",
                element("title", f"{_name(kind)}: {size_text(kind.bytes)}, {share:.1%}"),
                x=0,
                y=_BAR_TOP_PX,
                width=percent(share),
                height=_BAR_PX,
                class_=look(kind),
            ),
            transform=f"translate(0 {row * _ROW_PX})",
        )
        for row, (kind, share) in enumerate(kinds)
    ]
    told = "; ".join(f"{_name(kind)} {share:.1%}" for kind, share in kinds)
    return svg(*parts, height=_ROW_PX * len(kinds), label=f"Bars of the share of bytes: {told}")


def _table(kinds: list[tuple[Staleness, float]]) -> Element:
    columns = [
        Column("how it is applied"),
        Column("delay, steps", number=True),
        Column("steps merged", number=True),
        Column("gated"),
        Column("bytes of a step", number=True),
        Column("share", number=True),
    ]
    rows = [
        (
            _name(kind),
            str(kind.delay),
            str(kind.merged),
            "yes" if kind.gated else "no",
            size_text(kind.bytes),
            f"{share:.1%}",
        )
        for kind, share in kinds
    ]
    return table("Staleness", columns, rows)


def look(kind: Staleness) -> str:
    """The class of its colour."""
    if kind.merged > 1:
        return "merged"
    if kind.delay:
        return "delayed"
    return "gated" if kind.gated else "synchronous"


def _name(kind: Staleness) -> str:
    return class_text(kind.delay, kind.merged, kind.gated)
