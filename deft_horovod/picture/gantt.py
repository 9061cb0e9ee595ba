"""A schedule as a picture: a row for each machine that is used, a bar for each job there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deft_horovod.capacity.answer.lanes import lanes
from deft_horovod.capacity.answer.units import units_text
from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.schedule import Schedule
from deft_horovod.picture.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's, which people who see no difference between red and green can tell apart.
JOB_COLOURS: Final = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00")
_PAID: Final = "#dbe4ee"
_WIDTH_INCHES, _ROW_INCHES, _AROUND_INCHES = 11.0, 0.45, 1.1
_HOUR_S: Final = 3600.0
_LANE: Final = 0.84  # of a row
_LABELS: Final = 60  # bars, from which on nothing would be read


def draw(schedule: Schedule) -> Figure:
    """What is paid for is shaded; a bar is as high as the job's share of the machine's ranks."""
    units = list(schedule.by_unit)
    figure = new_figure(_WIDTH_INCHES, _AROUND_INCHES + _ROW_INCHES * max(1, len(units)))
    axes = figure.add_subplot()
    rows = {unit: row for row, unit in enumerate(units)}
    for rental in schedule.rentals:
        width_h = (rental.to_s - rental.from_s) / _HOUR_S
        axes.barh(rows[rental.unit], width_h, 1.0, rental.from_s / _HOUR_S, color=_PAID)
    for unit, row in rows.items():
        _draw_unit(axes, schedule, unit, row)
    kinds = schedule.demand.kinds
    axes.set_yticks(range(len(units)), [units_text(kinds, (unit,)) for unit in units], fontsize=8)
    axes.set_ylim(max(1, len(units)) - 0.5, -0.5)
    axes.set_xlim(0.0, max(schedule.end_s, 1) / _HOUR_S)
    axes.set_xlabel("hours", loc="right")
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_title(f"rent {float(schedule.rent):,.2f}; shaded: paid for", fontsize=10, loc="left")
    figure.tight_layout()
    return figure


def _draw_unit(axes: Axes, schedule: Schedule, unit: Unit, row: int) -> None:
    """Jobs that run at a time lie above each other, in lanes of a rank."""
    kind = schedule.demand.kinds[unit.kind]
    lane = _LANE / kind.ranks
    for work, start_s, end_s, first, ranks in lanes(schedule, unit):
        height = lane * ranks
        middle = row - _LANE / 2 + lane * first + height / 2
        left_h, width_h = start_s / _HOUR_S, (end_s - start_s) / _HOUR_S
        colour = JOB_COLOURS[work % len(JOB_COLOURS)]
        axes.barh(middle, width_h, height, left_h, color=colour, edgecolor="white", linewidth=0.5)
        if len(schedule.placements) <= _LABELS:
            name = schedule.demand.works[work].name
            axes.text(left_h + width_h / 2, middle, name, ha="center", va="center", fontsize=7)
