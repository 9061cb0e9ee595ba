"""A schedule as a page: what it costs, who runs where and when, what was missed."""

from __future__ import annotations

from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod.capacity.answer.lanes import lanes
from deft_horovod.capacity.answer.schedules import CapacityAnswer, Told
from deft_horovod.capacity.answer.sentences import capacity_sentences, money
from deft_horovod.capacity.answer.units import units_text
from deft_horovod.capacity.input.duration import duration_text
from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.report.basics.axis import ticks, x_ticks
from deft_horovod.report.basics.markup import element, percent, svg
from deft_horovod.report.basics.shell import shell
from deft_horovod.report.basics.tables import Column, table

_HOUR_S: Final = 3600
_ROW_PX, _NAME_PX, _BAR_PX, _AXIS_PX = 46, 18, 22, 22
# The classes of the style that are as many colours.
_LOOKS: Final = ("synchronous", "delayed", "gated", "merged", "backward", "update", "forward")


def capacity_page(answer: CapacityAnswer) -> str:
    """The same answer makes the same page."""
    ours = answer.ours
    told = f"Rent {money(ours.rent)}"
    if ours.missed:
        told = f"{len(ours.missed)} of {len(ours.demand.works)} jobs are missed; {told.lower()}"
    sections = [_schedule("The schedule", ours)]
    if answer.stock is not None:
        sections.append(_schedule("With stock Horovod", answer.stock))
    return shell(
        f"{told} - deft_horovod capacity of {answer.source}",
        element("p", f"Capacity: {answer.source}", class_="kicker"),
        element("h1", told),
        *(element("p", f"{text}.", class_="verdict") for text in capacity_sentences(answer)),
        *sections,
    )


def _schedule(title: str, told: Told) -> Element:
    text = (
        "A row for each machine that is used, a bar for each job on it; a bar is as high as its "
        "share of the machine's ranks. What is hatched is paid for."
    )
    return element(
        "section",
        element("h2", title),
        element("p", text),
        element("figure", _drawn(told)),
        _jobs(told),
        _rented(told),
    )


def _drawn(told: Told) -> Element:
    schedule = told.found.schedule
    end_s = max(1, schedule.end_s)
    units = list(schedule.by_unit)
    height = _ROW_PX * len(units)
    hours = [(value * _HOUR_S / end_s, f"{value:g}") for value in ticks(end_s / _HOUR_S)]
    hours[0] = (hours[0][0], "0 h")
    rows = (
        element("g", *_row(told, unit, end_s), transform=f"translate(0 {row * _ROW_PX})")
        for row, unit in enumerate(units)
    )
    label = f"{len(units)} machines with {len(schedule.placements)} jobs"
    return svg(x_ticks(hours, height, height + 15), *rows, height=height + _AXIS_PX, label=label)


def _row(told: Told, unit: Unit, end_s: int) -> list[Element]:
    schedule = told.found.schedule
    kind = schedule.demand.kinds[unit.kind]
    parts = [element("text", units_text(schedule.demand.kinds, (unit,)), x=0, y=_NAME_PX - 5)]
    for rental in schedule.rentals:
        if rental.unit == unit:
            said = f"rented, {money(float(rental.rent))}"
            place = {"y": _NAME_PX, "height": _BAR_PX, "class_": "waiting"}
            parts.append(_bar(rental.from_s / end_s, rental.to_s / end_s, said, place))
    for work, start_s, to_s, first, ranks in lanes(schedule, unit):
        lane = _BAR_PX / kind.ranks
        times = f"{duration_text(start_s)} to {duration_text(to_s)}"
        place = {
            "y": f"{_NAME_PX + lane * first:.2f}",
            "height": f"{lane * ranks:.2f}",
            "class_": _LOOKS[work % len(_LOOKS)],
        }
        said = f"{schedule.demand.works[work].name}, {ranks} ranks here, {times}"
        parts.append(_bar(start_s / end_s, to_s / end_s, said, place))
    return parts


def _bar(begin: float, end: float, said: str, place: dict[str, object]) -> Element:
    inside = element("title", said)
    return element("rect", inside, x=percent(begin), width=percent(end - begin), **place)


def _jobs(told: Told) -> Element:
    columns = [Column("job"), Column("machines")]
    columns += [
        Column(title, number=True) for title in ("ranks", "from", "to", "deadline", "slack")
    ]
    rows = [
        (
            row.job,
            row.machines,
            str(row.ranks),
            *(duration_text(at) for at in (row.from_s, row.to_s, row.deadline_s, row.slack_s)),
        )
        for row in told.jobs
    ]
    return table("Jobs", columns, rows)


def _rented(told: Told) -> Element | None:
    if not told.rented:
        return None
    columns = [Column("rented"), *(Column(name, number=True) for name in ("from", "to", "rent"))]
    rows = [
        (one.machine, duration_text(one.from_s), duration_text(one.to_s), money(one.rent))
        for one in told.rented
    ]
    return table("Rented machines", columns, rows)
