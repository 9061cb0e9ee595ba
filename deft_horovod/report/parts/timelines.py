"""What happens in a step before and after, drawn to one scale: computing above, then each link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod.picture.bars import (
    CLASS_COLOURS,
    DARK_KINDS,
    STAGE_COLOURS,
    WAITING,
    Bar,
    plan_bars,
    plan_periods,
    stock_bars,
)
from deft_horovod.plan import Plan
from deft_horovod.plan.words import many, ranges_text
from deft_horovod.report.basics.axis import ms_places, x_ticks
from deft_horovod.report.basics.findings import Findings
from deft_horovod.report.basics.labels import fitting
from deft_horovod.report.basics.markup import element, percent, svg
from deft_horovod.report.basics.wording import capital, exposed_text, ms, short
from deft_horovod.simulate.stock import StockStep
from deft_horovod.solver.predict.timeline import Timeline

_ROW_PX: Final = 50
_BAR_TOP_PX, _BAR_PX = 18, 26
_AXIS_PX: Final = 22
_STEPS: Final = 2  # of the baseline, that are covered at least
# Of the width: narrower bars have no edge, which would hide their colour.
_EDGE: Final = 0.008


@dataclass(frozen=True)
class Picture:
    """One of the two timelines."""

    title: str
    text: str
    rows: tuple[str, ...]  # compute, and the links
    bars: tuple[Bar, ...]
    duration_us: float


def timelines(findings: Findings) -> Element | None:
    """Both, or the baseline's alone where that is kept; None: nothing takes time."""
    shown = pictures(findings)
    if not any(picture.bars for picture in shown):
        return None
    kinds = {bar.kind for picture in shown for bar in picture.bars}
    text = (
        "Calculated from the profile, to one scale. Above is computing, below are the messages on "
        "each link: those of stock Horovod with their sizes, those of a plan with the numbers of "
        "its buckets. Point at a bar to read what it is."
    )
    return element(
        "section",
        element("h2", "Timeline before and after" if len(shown) > 1 else "Timeline"),
        element("p", text),
        legend(kinds),
        *(part for picture in shown for part in _drawn(picture)),
    )


def pictures(findings: Findings) -> list[Picture]:
    """Of the same duration: two steps of the baseline, or more where the plan needs them."""
    inputs, after = findings.inputs, findings.after
    plan = inputs.plan
    duration_us = _STEPS * findings.before.step_us
    if isinstance(after, Timeline) and plan is not None:
        duration_us = max(duration_us, plan_periods(plan) * after.period_us)
    elif after is not None:
        duration_us = max(duration_us, _STEPS * after.step_us)
    old = findings.baseline
    rows, bars = _before(findings, duration_us)
    stock = Picture(
        title=f"Before: {old}" if after is not None else capital(old),
        text=_step_text(findings.before, _measured_us(findings, before=True)),
        rows=tuple(rows),
        bars=tuple(bars),
        duration_us=duration_us,
    )
    if after is None or plan is None or findings.is_kept:
        return [stock]
    rows, bars = _of_plan(findings, plan, after, duration_us)
    text = _step_text(after, _measured_us(findings, before=False))
    if isinstance(after, Timeline) and not after.steady:
        text += " A link's backlog is still growing here."
    ours = Picture(f"After: {findings.policy}", text, tuple(rows), tuple(bars), duration_us)
    return [stock, ours]


def legend(kinds: set[str]) -> Element:
    """Of the kinds that are there, in a fixed order."""
    known = [*STAGE_COLOURS, *CLASS_COLOURS, WAITING]
    entries = [
        element("li", element("span", class_=f"swatch {kind}", aria_hidden="true"), kind)
        for kind in known
        if kind in kinds
    ]
    return element("ul", *entries, class_="legend")


def _before(findings: Findings, duration_us: float) -> tuple[list[str], list[Bar]]:
    """Names of its rows, and its bars."""
    before, inputs = findings.before, findings.inputs
    plan = inputs.comparison.baseline.plan if inputs.comparison is not None else None
    if plan is not None:
        return _of_plan(findings, plan, before, duration_us)
    if not isinstance(before, StockStep):
        return ["compute"], []
    links = [_link_text(link.name, _stock_busy(before)) for link in inputs.profile.links[:1]]
    return ["compute", *links], stock_bars(before, inputs.profile, duration_us)


def _of_plan(
    findings: Findings, plan: Plan, after: Timeline | StockStep, duration_us: float
) -> tuple[list[str], list[Bar]]:
    """Names of its rows, and its bars; links that carry nothing have no row."""
    if isinstance(after, StockStep):
        details = [_buckets_text(message.members) for message in after.messages]
        bars = stock_bars(after, findings.inputs.profile, duration_us, details)
        return ["compute", _link_text(plan.links[0].name, _stock_busy(after))], bars
    used = sorted({task.link for task in plan.tasks})
    place = {0: 0, **{link + 1: row for row, link in enumerate(used, start=1)}}
    names = [_link_text(plan.links[link].name, after.link_busy[link]) for link in used]
    bars = plan_bars(plan, after, duration_us)
    return ["compute", *names], [replace(bar, row=place[bar.row]) for bar in bars]


def _drawn(picture: Picture) -> Iterator[Element]:
    height = _ROW_PX * len(picture.rows)
    end_us = picture.duration_us
    parts: list[Element] = [x_ticks(ms_places(end_us), height, height + 15), _steps(picture)]
    for row, name in enumerate(picture.rows):
        bars = sorted((b for b in picture.bars if b.row == row), key=lambda b: b.begins_us)
        parts.append(
            element(
                "g",
                element("text", name, x=0, y=_BAR_TOP_PX - 5),
                *_bars(bars, end_us),
                *_labels(bars, end_us),
                transform=f"translate(0 {row * _ROW_PX})",
            )
        )
    messages = sum(bar.row > 0 for bar in picture.bars)
    label = f"{picture.title}, {ms(end_us)} ms with {many(messages, 'message')}. {picture.text}"
    yield element("h3", picture.title)
    yield element("p", picture.text)
    yield element("figure", svg(*parts, height=height + _AXIS_PX, label=label), class_="timeline")


def _bars(bars: Sequence[Bar], end_us: float) -> Iterator[Element]:
    """Neighbours of one look share a group, which keeps the page small."""

    def look(bar: Bar) -> str:
        wide = (bar.ends_us - bar.begins_us) / end_us >= _EDGE
        return f"{bar.kind} edged" if wide else bar.kind

    for kind, group in groupby(bars, look):
        drawn = [
            element(
                "rect",
                element("title", _title(bar)),
                x=percent(bar.begins_us / end_us),
                width=percent((bar.ends_us - bar.begins_us) / end_us),
                y=_BAR_TOP_PX,
                height=_BAR_PX,
            )
            for bar in group
        ]
        yield element("g", *drawn, class_=kind)


def _labels(bars: Sequence[Bar], end_us: float) -> Iterator[Element]:
    for bar in bars:
        texts = [bar.label] if bar.label else []
        if bar.step is not None:
            texts = [f"{bar.kind} {bar.step}", f"{bar.kind[0].upper()}{bar.step}"]
        shade = "on-dark" if bar.kind in DARK_KINDS else "on-light"
        for text, widths in fitting(texts, (bar.ends_us - bar.begins_us) / end_us):
            yield element(
                "text",
                text,
                x=percent((bar.begins_us + bar.ends_us) / 2 / end_us),
                y=_BAR_TOP_PX + _BAR_PX // 2 + 4,
                text_anchor="middle",
                class_=f"inside {shade} {widths}",
                aria_hidden="true",
            )


def _steps(picture: Picture) -> Element:
    """A line where each step begins."""
    begins: dict[int, float] = {}
    for bar in picture.bars:
        if bar.kind == "forward" and bar.step is not None:
            begins[bar.step] = min(bar.begins_us, begins.get(bar.step, bar.begins_us))
    height = _ROW_PX * len(picture.rows)
    lines = [
        element("line", x1=x, x2=x, y1=0, y2=height)
        for x in (percent(us / picture.duration_us) for us in begins.values() if us > 0.0)
    ]
    return element("g", *lines, class_="steps")


def _title(bar: Bar) -> str:
    span = f"{ms(bar.begins_us)} .. {ms(bar.ends_us)} ms"
    if bar.row:
        return f"{bar.detail}; {span}"
    of_step = "" if bar.step is None else f" of step {bar.step}"
    return f"{bar.kind}{of_step}: {ms(bar.ends_us - bar.begins_us)} ms, {span}"


def _step_text(step: Timeline | StockStep, measured_us: float | None) -> str:
    """What is calculated, and how far that is from what was measured."""
    exposed_us = max(0.0, step.step_us - step.compute_us)
    text = f"A step takes {ms(step.step_us)} ms, exposed {exposed_text(exposed_us, step.step_us)}."
    if measured_us is None or measured_us <= 0.0:
        return text
    off = step.step_us / measured_us - 1.0
    return f"{text} Measured: {ms(measured_us)} ms; the calculation is {off:+.1%} off."


def _measured_us(findings: Findings, *, before: bool) -> float | None:
    comparison = findings.inputs.comparison
    if comparison is None:
        return None
    return comparison.baseline.step_us if before else comparison.ours.step_us


def _stock_busy(step: StockStep) -> float:
    sent_us = sum(message.arrives_us - message.starts_us for message in step.messages)
    return sent_us / step.step_us if step.step_us > 0.0 else 0.0


def _link_text(name: str, busy: float) -> str:
    return f"link {short(name)}, {busy:.0%} busy"


def _buckets_text(members: Sequence[int]) -> str:
    word = "bucket" if len(members) == 1 else "buckets"
    return f"{word} {ranges_text(sorted(members))}"
