"""A picture of how policies scale: efficiency over the number of ranks, and over the link's rate.

The upper row has a panel for each link, the lower one a panel for each number of ranks; a row
whose axis would have one value only is left out, unless nothing else is left. Dashed lines are the
floors: what no plan can beat, synchronous or as late as allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from deft_horovod.base.rate import parse_rate
from deft_horovod.picture.figure import new_figure
from deft_horovod.policies.stock import Stock
from deft_horovod.simulate.cluster import MEASURED
from deft_horovod.simulate.outlook import Outlook

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's, which people who see no difference between red and green can tell apart.
_COLOURS: Final = MappingProxyType(
    {
        "stock": "#000000",
        "bucket": "#56b4e9",
        "deft": "#d55e00",
        "least_stale": "#009e73",
        "priority": "#cc79a7",
        "wfbp": "#e69f00",
    }
)
_OTHER: Final = "#0072b2"
_FLOOR: Final = "#999999"
_PANEL_INCHES: Final = (4.0, 3.0)
_LEGEND_INCHES: Final = 0.5

Number = Callable[[Outlook], float]


def draw(found: Sequence[Outlook]) -> Figure:
    """Of outlooks on one or more clusters."""
    links = list(dict.fromkeys(outlook.link for outlook in found))
    counts = list(dict.fromkeys(outlook.ranks for outlook in found))
    rows: list[list[tuple[str, str, list[Outlook]]]] = []
    if len(counts) > 1 or len(links) == 1:
        rows.append(
            [(f"link: {link}", "ranks", [o for o in found if o.link == link]) for link in links]
        )
    if len(links) > 1:
        rows.append(
            [
                (f"{count} ranks", "Gbit/s", [o for o in found if o.ranks == count])
                for count in counts
            ]
        )
    width, height = _PANEL_INCHES
    columns = max(len(row) for row in rows)
    figure = new_figure(width * columns, height * len(rows) + _LEGEND_INCHES)
    for at, row in enumerate(rows):
        for place, (title, label, outlooks) in enumerate(row):
            axes = figure.add_subplot(len(rows), columns, at * columns + place + 1)
            number = _rate_gbit if label == "Gbit/s" else _ranks
            _draw_panel(axes, outlooks, number)
            axes.set_title(title, fontsize=9, loc="left")
            axes.set_xlabel(label, fontsize=8)
            if place == 0:
                axes.set_ylabel("efficiency", fontsize=8)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    share = _LEGEND_INCHES / (height * len(rows) + _LEGEND_INCHES)
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0.0, share, 1.0, 1.0))
    return figure


def _ranks(outlook: Outlook) -> float:
    return outlook.ranks


def _rate_gbit(outlook: Outlook) -> float:
    return 0.0 if outlook.link == MEASURED else parse_rate(outlook.link) / 1e9


def _draw_panel(axes: Axes, found: Sequence[Outlook], number: Number) -> None:
    for policy in dict.fromkeys(outlook.policy for outlook in found):
        line = sorted((number(o), o.efficiency) for o in found if o.policy == policy)
        axes.plot(
            [x for x, _ in line],
            [y for _, y in line],
            label=policy,
            color=_COLOURS.get(policy, _OTHER),
            linewidth=1.5,
            marker="o",
            markersize=3.5,
            # Often as fast as another one, which is to be seen under it.
            linestyle="--" if policy == Stock.name else "-",
            zorder=3 if policy == Stock.name else 2,
        )
    floors = {(number(o), o.highest_efficiency) for o in found}
    for title, choose, style in (("synchronous floor", min, "--"), ("latest floor", max, ":")):
        at = sorted({x for x, _ in floors})
        best = [choose(y for x, y in floors if x == place) for place in at]
        axes.plot(at, best, label=title, color=_FLOOR, linewidth=1.0, linestyle=style, zorder=0)
    axes.set_xscale("log", base=2)
    at = sorted({number(o) for o in found})
    axes.set_xticks(at, [f"{x:g}" for x in at])
    axes.minorticks_off()
    axes.set_ylim(0.0, 1.05)
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, linewidth=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
