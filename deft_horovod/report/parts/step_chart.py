"""What a step takes, of all that were compared: computing, and what is exposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod.comparison import Comparison
from deft_horovod.comparison.text import updates_text
from deft_horovod.plan.staleness_text import IN_TIME, staleness_text
from deft_horovod.report.basics.axis import ms_places, x_ticks
from deft_horovod.report.basics.findings import Findings
from deft_horovod.report.basics.markup import element, percent, svg
from deft_horovod.report.basics.tables import Column, table
from deft_horovod.report.basics.wording import exposed_text, ms, short

_ROW_PX: Final = 46
_BAR_TOP_PX, _BAR_PX = 20, 18
_AXIS_PX: Final = 22
_ROOM: Final = 1.02  # beyond the longest


@dataclass(frozen=True)
class StepRow:
    """One of those that were compared."""

    name: str
    step_us: float
    low_us: float | None = None  # four of five steps lie between these
    high_us: float | None = None
    speed: str = ""  # of stock's
    updates: str = ""
    marked: bool = False


def step_chart(findings: Findings) -> Element:
    rows = step_rows(findings)
    comparison = findings.inputs.comparison
    if comparison is not None:
        rounds = len(comparison.baseline.rounds_us)
        steps = sum(len(one) for one in comparison.baseline.rounds_us)
        text = (
            f"All took turns in the same job: {rounds} rounds, {steps} steps each. The bar is the "
            "median step, the line across its end holds four of five steps. Grey is computing, "
            "hatched is exposed communication: time in which nothing is computed."
        )
        title = "What was compared"
    else:
        text = (
            "Calculated from the profile. Grey is computing, hatched is exposed communication: "
            "time in which nothing is computed."
        )
        if findings.floor_us is not None:
            text += " No plan that is as late as this one may be goes below the floor."
        title = "What a step takes"
    return element(
        "section",
        element("h2", title),
        element("p", text),
        element("figure", _drawn(rows, findings.figures.compute_us)),
        _table(rows, findings),
    )


def step_rows(findings: Findings) -> list[StepRow]:
    """The baseline first."""
    if findings.inputs.comparison is not None:
        return _measured(findings.inputs.comparison)
    figures, plan = findings.figures, findings.inputs.plan
    rows = [StepRow("stock", figures.before_us, speed="1.00", updates=IN_TIME)]
    if figures.after_us is not None and plan is not None:
        gain = f"{figures.speedup:.2f}"
        late = staleness_text(plan)
        rows.append(StepRow(findings.policy, figures.after_us, speed=gain, updates=late))
    if findings.floor_us is not None and findings.floor_us > 0.0:
        gain = f"{figures.before_us / findings.floor_us:.2f}"
        rows.append(StepRow("floor", findings.floor_us, speed=gain))
    return rows


def _measured(comparison: Comparison) -> list[StepRow]:
    return [
        StepRow(
            arm.name,
            arm.step_us,
            *arm.spread_us,
            speed=f"{comparison.speedup(arm):.2f}",
            updates=updates_text(arm),
            marked=arm is comparison.ours,
        )
        for arm in comparison.arms
    ]


def _drawn(rows: Sequence[StepRow], compute_us: float) -> Element:
    end_us = _ROOM * max(max(row.step_us, row.high_us or 0.0) for row in rows)
    height = _ROW_PX * len(rows)
    parts = [
        x_ticks(ms_places(end_us), height, height + 15),
        *(
            element("g", *_bar(row, compute_us, end_us or 1.0), transform=f"translate(0 {at})")
            for at, row in zip(range(0, height, _ROW_PX), rows, strict=True)
        ),
    ]
    told = "; ".join(f"{row.name} {ms(row.step_us)} ms" for row in rows)
    return svg(*parts, height=height + _AXIS_PX, label=f"Bars of the step times: {told}")


def _bar(row: StepRow, compute_us: float, end_us: float) -> list[Element]:
    computing_us = min(compute_us, row.step_us)
    exposed_us = row.step_us - computing_us
    middle = _BAR_TOP_PX + _BAR_PX // 2
    mark = " (chosen)" if row.marked else ""
    place = {"y": _BAR_TOP_PX, "height": _BAR_PX}
    parts = [
        element(
            "text",
            element("tspan", short(row.name), class_="strong" if row.marked else None),
            f"{mark}: {ms(row.step_us)} ms",
            x=0,
            y=_BAR_TOP_PX - 6,
        ),
        element(
            "rect",
            element("title", f"computing {ms(computing_us)} ms"),
            x=0,
            width=percent(computing_us / end_us),
            class_="backward",
            **place,
        ),
        element(
            "rect",
            element("title", f"exposed {exposed_text(exposed_us, row.step_us)}"),
            x=percent(computing_us / end_us),
            width=percent(exposed_us / end_us),
            class_="waiting",
            **place,
        ),
    ]
    if row.low_us is not None and row.high_us is not None:
        low, high = percent(row.low_us / end_us), percent(row.high_us / end_us)
        ends = [element("line", x1=x, x2=x, y1=middle - 5, y2=middle + 5) for x in (low, high)]
        line = element("line", x1=low, x2=high, y1=middle, y2=middle)
        text = f"four of five steps: {ms(row.low_us)} .. {ms(row.high_us)} ms"
        parts.append(element("g", element("title", text), line, *ends, class_="spread"))
    return parts


def _table(rows: Sequence[StepRow], findings: Findings) -> Element:
    columns = [
        Column("policy"),
        Column("step, ms", number=True),
        Column("four of five, ms", number=True),
        Column("exposed", number=True),
        Column("of stock's speed", number=True),
        Column("updates", sentence=True),
    ]
    spread = [
        f"{ms(row.low_us)} .. {ms(row.high_us)}"
        if row.low_us is not None and row.high_us is not None
        else ""
        for row in rows
    ]
    compute_us = findings.figures.compute_us
    cells = [
        (
            row.name,
            ms(row.step_us),
            between,
            exposed_text(max(0.0, row.step_us - compute_us), row.step_us),
            row.speed,
            row.updates,
        )
        for row, between in zip(rows, spread, strict=True)
    ]
    if not any(spread):  # predicted: there is none
        columns.pop(2)
        cells = [(*cell[:2], *cell[3:]) for cell in cells]  # type: ignore[misc]
    return table("Step times", columns, cells)
