"""A report of the benchmark `cluster` as a picture: speed over stock Horovod and the best rival.

A panel for each number of hosts and model; along it the ratio of communication to computing. Above
all arms over stock Horovod, below ours over the best rival that is as exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from deft_horovod.picture.figure import new_figure
from scripts.benchmarks.arms import KINDS
from scripts.benchmarks.rivals import EXACT, OURS, Cell, of_best, of_best_exact, step_ms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_INCHES = (3.4, 2.7)
LEGEND_INCHES = 0.9
# Ours stand out; Okabe and Ito's colours, which nearly all readers can tell apart.
COLOURS = MappingProxyType({"sync": "#0072b2", "least_stale": "#009e73", "deft": "#d55e00"})
MARKS = "osv^<>DPXd*hp8"


def draw(cells: Sequence[Cell]) -> Figure:
    """Cells without stock Horovod say nothing here."""
    cells = [cell for cell in cells if "stock" in cell["arms"]]
    panels = list(dict.fromkeys((cell["hosts"], cell["profile"]) for cell in cells))
    width, height = PANEL_INCHES
    figure = new_figure(width * len(panels), 2 * height + LEGEND_INCHES)
    axes = figure.subplots(2, len(panels), sharex=True, sharey="row", squeeze=False)
    names = [n for n in KINDS if n != "alone" and any(n in cell["arms"] for cell in cells)]
    for column, (hosts, profile) in enumerate(panels):
        own = sorted(
            (c for c in cells if (c["hosts"], c["profile"]) == (hosts, profile)),
            key=lambda c: float(c["ccr"]),
        )
        upper, lower = axes[0][column], axes[1][column]
        upper.set_title(f"{profile}, {hosts} hosts", fontsize=9)
        for place, name in enumerate(names):
            _line(upper, own, name, place, _over_stock)
            if name in OURS:
                _line(lower, own, name, place, _over_rival)
        for one in (upper, lower):
            one.axhline(1.0, color="#999999", linewidth=0.8)
            one.tick_params(labelsize=8)
        lower.set_xlabel("communication over computing", fontsize=8)
    axes[0][0].set_ylabel("speed over stock Horovod", fontsize=8)
    axes[1][0].set_ylabel("speed over the best rival", fontsize=8)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=6, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0.0, LEGEND_INCHES / (2 * height + LEGEND_INCHES), 1.0, 1.0))
    return figure


def _line(
    axes: Axes,
    cells: Sequence[Cell],
    name: str,
    place: int,
    value: Callable[[Cell, str], float | None],
) -> None:
    points = [(c["ccr"], value(c, name)) for c in cells if name in c["arms"]]
    known: list[tuple[Any, float]] = [(ccr, ratio) for ccr, ratio in points if ratio is not None]
    axes.plot(
        [ccr for ccr, _ in known],
        [ratio for _, ratio in known],
        color=COLOURS.get(name, "#8a8f98"),
        linewidth=2.0 if name in COLOURS else 0.8,
        marker=MARKS[place % len(MARKS)],
        markersize=5 if name in COLOURS else 3.5,
        label=KINDS[name].title,
        zorder=3 if name in COLOURS else 2,
    )


def _over_stock(cell: Cell, arm: str) -> float:
    return step_ms(cell, "stock") / step_ms(cell, arm)


def _over_rival(cell: Cell, arm: str) -> float | None:
    """Exact ones are compared with exact ones."""
    ratio = of_best_exact(cell, arm) if arm in ("sync", *EXACT) else of_best(cell, arm)
    return None if ratio is None else 1.0 / ratio
