"""What each layer computes and sends: a chart of the largest, and a table of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod.base.size import size_text
from deft_horovod.plan.words import many
from deft_horovod.profile.layer_table import LayerRow
from deft_horovod.report.basics.findings import Findings
from deft_horovod.report.basics.markup import element
from deft_horovod.report.basics.tables import Column, table
from deft_horovod.report.basics.wording import ms

_MOST: Final = 25
# Of each bar of a layer its look; links after the second look like the second.
_LOOKS: Final = ("forward", "backward", "synchronous", "gated")


def layer_chart(findings: Findings) -> Element | None:
    """None: there are no layers."""
    rows = findings.layers.rows
    if not rows:
        return None
    links = [link.name for link in findings.inputs.profile.links]
    largest = sorted(rows, key=lambda row: (-_sent(row), row.number))
    shown, rest = largest[:_MOST], largest[_MOST:]
    longest_us = max((us for row in shown for us in _times_us(row, links).values()), default=0.0)
    which = f"The {_MOST} layers with the most to send" if rest else "All layers"
    text = (
        f"{which}, largest first, with the milliseconds of each. Communication is what a layer's "
        "gradients take on a link if they travel as one message; backward of a layer is what "
        "passed since the gradients before its own were ready."
    )
    return element(
        "section",
        element("h2", "Layers"),
        element("p", text),
        _legend(links),
        element(
            "figure",
            *(_layer(row, links, longest_us or 1.0) for row in shown),
            class_="layers",
            role="img",
            aria_label=_told(shown, links),
        ),
        element("p", _rest_text(rest, links)) if rest else None,
        _table(rows, links),
    )


def _layer(row: LayerRow, links: Sequence[str], longest_us: float) -> Element:
    what = f"{row.type}, {many(row.parameters, 'tensor')}, {size_text(row.bytes)}"
    bars = [
        element(
            "div",
            element("span", class_=f"bar {look}", style=f"--share: {us / longest_us:.4f}"),
            element("span", ms(us), class_="amount"),
            class_="line",
            title=f"{stage}: {ms(us)} ms",
        )
        for (stage, us), look in zip(_times_us(row, links).items(), _looks(len(links)), strict=True)
    ]
    name = element("div", row.name, element("small", what), class_="name", title=row.name)
    return element("div", name, element("div", *bars, class_="lines"), class_="layer")


def _legend(links: Sequence[str]) -> Element:
    stages = ["forward", "backward", *(f"communication on link {link}" for link in links)]
    entries = [
        element("li", element("span", class_=f"swatch {look}", aria_hidden="true"), stage)
        for stage, look in zip(stages, _looks(len(links)), strict=True)
    ]
    return element("ul", *entries, class_="legend")


def _table(rows: Sequence[LayerRow], links: Sequence[str]) -> Element:
    numbers = ["tensors", "size", "share", "forward, ms", "backward, ms", "ready, ms"]
    columns = [
        Column("layer"),
        Column("type"),
        *(Column(title, number=True) for title in numbers),
        *(Column(f"{link}, ms", number=True) for link in links),
    ]
    cells = [
        (
            row.name,
            row.type,
            f"{row.parameters:,}",
            size_text(row.bytes),
            f"{row.share:.1%}",
            ms(row.forward_us),
            ms(row.backward_us),
            ms(row.ready_us),
            *(ms(row.communication_us[link]) for link in links),
        )
        for row in rows
    ]
    return table("All layers, in the order of the model", columns, cells, folded=True)


def _told(rows: Iterable[LayerRow], links: Sequence[str]) -> str:
    """For those who do not see the chart; all numbers are in the table."""
    texts = []
    for row in rows:
        times = ", ".join(f"{stage} {ms(us)}" for stage, us in _times_us(row, links).items())
        texts.append(f"{row.name}: {times}")
    return f"Bars of milliseconds for each layer. {'; '.join(texts)}"


def _rest_text(rest: Sequence[LayerRow], links: Sequence[str]) -> str:
    sums: dict[str, float] = {}
    for row in rest:
        for stage, us in _times_us(row, links).items():
            sums[stage] = sums.get(stage, 0.0) + us
    times = ", ".join(f"{stage} {ms(us)} ms" for stage, us in sums.items())
    size = size_text(sum(row.bytes for row in rest))
    return f"The other {many(len(rest), 'layer')} together: {size}, {times}."


def _times_us(row: LayerRow, links: Sequence[str]) -> Mapping[str, float]:
    sent = {f"communication on {link}": row.communication_us[link] for link in links}
    return {"forward": row.forward_us, "backward": row.backward_us, **sent}


def _looks(links: int) -> list[str]:
    return [*_LOOKS[: 2 + min(links, 2)], *[_LOOKS[-1]] * (links - 2)]


def _sent(row: LayerRow) -> float:
    """On the slowest link; bytes where there is none."""
    return max(row.communication_us.values(), default=float(row.bytes))
