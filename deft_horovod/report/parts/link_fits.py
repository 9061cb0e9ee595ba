"""What links were measured to do, the lines that were fitted, and how far off these are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod.base.size import size_text
from deft_horovod.profile import LinkCost, LinkProfile, LinkSample
from deft_horovod.report.basics.axis import log_ticks, x_ticks
from deft_horovod.report.basics.findings import Findings
from deft_horovod.report.basics.markup import element, percent, svg
from deft_horovod.report.basics.tables import Column, table
from deft_horovod.report.basics.wording import ms, rate_text
from deft_horovod.report.parts.format_costs import format_costs

_FIT_PX, _OFF_PX, _AXIS_PX = 220, 80, 22
_POINTS: Final = 48  # of a line
_PAD: Final = 0.05  # of the width and the height
_SMALLEST_US: Final = 1e-3  # keeps logarithms finite
_LEAST_OFF: Final = 0.05  # that the chart of residuals spans


def link_fits(findings: Findings) -> Element | None:
    """None: no link was measured."""
    links = findings.inputs.profile.links
    if not links:
        return None
    text = (
        "A message takes a start-up time and a time for each byte. Points are medians of messages "
        "that really travelled, with nothing beside them; the line is the fit that plans are made "
        "with, the dashed one that of the link while all others are busy. Both axes are "
        "logarithmic. The residual is how far a measured time is from the line."
    )
    return element(
        "section",
        element("h2", "Links"),
        element("p", text),
        _costs(links),
        format_costs(links),
        *(part for link in links for part in _link(link)),
    )


def residuals(link: LinkProfile) -> list[float]:
    """Of each sample: (measured - fitted) / fitted."""
    fitted = [max(_SMALLEST_US, link.cost.time_us(s.size_bytes)) for s in link.samples]
    times = [max(_SMALLEST_US, s.time_us) for s in link.samples]
    return [(time - fit) / fit for time, fit in zip(times, fitted, strict=True)]


def _costs(links: Sequence[LinkProfile]) -> Element:
    columns = [
        Column("link"),
        Column("fitted"),
        Column("start of a message, ms", number=True),
        Column("rate", number=True),
        Column("residual (root mean square)", number=True),
    ]
    rows = []
    for link in links:
        off = f"{link.residual:.1%}" if link.samples else ""
        for how, cost, told in (("alone", link.cost, off), ("others busy", link.busy_cost, "")):
            if cost is not None:
                rows.append((link.name, how, ms(cost.alpha_us), rate_text(cost), told))
    return table("What a message costs", columns, rows)


def _link(link: LinkProfile) -> Iterator[Element]:
    yield element("h3", f"Link {link.name}")
    if not link.samples:
        yield element("p", "The profile holds no samples of this link, only what was fitted.")
        return
    samples = sorted(link.samples, key=lambda sample: sample.size_bytes)
    plot = _Plot.of(link, samples)
    yield element(
        "figure",
        element("div", plot.y_labels(), plot.drawn(link, samples), class_="plot"),
        element("div", *_off(plot, link), class_="plot"),
    )
    yield _samples(link)


def _samples(link: LinkProfile) -> Element:
    columns = [Column("size")]
    columns += [Column(title, number=True) for title in ("measured, ms", "fitted, ms", "residual")]
    rows = [
        (
            size_text(sample.size_bytes),
            ms(sample.time_us),
            ms(link.cost.time_us(sample.size_bytes)),
            f"{off:+.1%}",
        )
        for sample, off in zip(link.samples, residuals(link), strict=True)
    ]
    return table(f"Samples of link {link.name}", columns, rows, folded=True)


@dataclass(frozen=True)
class _Plot:
    """Sizes across, times upward, both logarithmic."""

    sizes: tuple[float, float]  # bytes
    times_us: tuple[float, float]

    @classmethod
    def of(cls, link: LinkProfile, samples: Sequence[LinkSample]) -> _Plot:
        """With room for all samples and both lines between them."""
        sizes = [float(max(1, sample.size_bytes)) for sample in samples]
        costs = [cost for cost in (link.cost, link.busy_cost) if cost is not None]
        times = [sample.time_us for sample in samples]
        times += [cost.time_us(int(size)) for cost in costs for size in (min(sizes), max(sizes))]
        times = [max(_SMALLEST_US, time) for time in times]
        return cls(_apart(min(sizes), max(sizes)), _apart(min(times), max(times)))

    def x(self, size_bytes: float) -> float:
        return _place(max(1.0, size_bytes), self.sizes)

    def y(self, time_us: float) -> float:
        return 1.0 - _place(max(_SMALLEST_US, time_us), self.times_us)

    def x_places(self) -> list[tuple[float, str]]:
        return [(self.x(size), _round_size(size)) for size in log_ticks(*self.sizes)]

    def y_labels(self) -> Element:
        labels = [
            element("text", f"{us / 1000:,.10g} ms", x="100%", y=_FIT_PX * self.y(us) + 4)
            for us in log_ticks(*self.times_us)
        ]
        group = element("g", *labels, class_="axis", text_anchor="end")
        return element("svg", group, width="100%", height=_FIT_PX, aria_hidden="true")

    def drawn(self, link: LinkProfile, samples: Sequence[LinkSample]) -> Element:
        lines = [
            element("line", x1=0, x2="100%", y1=percent(self.y(us)), y2=percent(self.y(us)))
            for us in log_ticks(*self.times_us)
        ]
        points = [
            element(
                "circle",
                element("title", f"{size_text(s.size_bytes)}: {ms(s.time_us)} ms"),
                cx=percent(self.x(s.size_bytes)),
                cy=percent(self.y(s.time_us)),
                r=4,
            )
            for s in samples
        ]
        busy = None if link.busy_cost is None else self._line(link.busy_cost, "fit busy")
        label = (
            f"Times of {len(samples)} message sizes on link {link.name}, from "
            f"{ms(samples[0].time_us)} ms for {size_text(samples[0].size_bytes)} to "
            f"{ms(samples[-1].time_us)} ms for {size_text(samples[-1].size_bytes)}, and the fit"
        )
        return svg(
            x_ticks(self.x_places(), _FIT_PX, _FIT_PX + 15),
            element("svg", *lines, width="100%", height=_FIT_PX, class_="axis"),
            element(
                "svg",
                self._line(link.cost, "fit"),
                busy,
                width="100%",
                height=_FIT_PX,
                viewBox="0 0 1000 1000",
                preserveAspectRatio="none",
            ),
            element("svg", *points, width="100%", height=_FIT_PX, class_="samples"),
            height=_FIT_PX + _AXIS_PX,
            label=label,
        )

    def _line(self, cost: LinkCost, look: str) -> Element:
        """Stretched with the chart; its width is not (`page.css`)."""
        low, high = (math.log(size) for size in self.sizes)
        sizes = [math.exp(low + (high - low) * n / _POINTS) for n in range(_POINTS + 1)]
        points = [
            (self.x(size), self.y(cost.alpha_us + cost.beta_us_per_byte * size)) for size in sizes
        ]
        text = " ".join(f"{1000 * x:.1f},{1000 * y:.1f}" for x, y in points)
        return element("polyline", points=text, class_=look)


def _off(plot: _Plot, link: LinkProfile) -> Iterator[Element]:
    """Residuals, below the sizes that they belong to."""
    offs = residuals(link)
    most = max(_LEAST_OFF, *(abs(off) for off in offs)) * 1.1
    middle = _OFF_PX / 2
    labels = [
        element("text", text, x="100%", y=y)
        for text, y in (
            (f"{most:+.0%}", 11),
            ("0", middle + 4),
            (f"{-most:+.0%}", _OFF_PX - 2),
        )
    ]
    group = element("g", *labels, class_="axis", text_anchor="end")
    yield element("svg", group, width="100%", height=_OFF_PX, aria_hidden="true")
    stems = []
    for sample, off in zip(link.samples, offs, strict=True):
        x, y = percent(plot.x(sample.size_bytes)), middle - off / most * middle
        stems.append(
            element(
                "g",
                element("title", f"{size_text(sample.size_bytes)}: {off:+.1%}"),
                element("line", x1=x, x2=x, y1=middle, y2=f"{y:.1f}"),
                element("circle", cx=x, cy=f"{y:.1f}", r=3),
            )
        )
    told = ", ".join(f"{off:+.1%}" for off in offs)
    yield svg(
        element("g", element("line", x1=0, x2="100%", y1=middle, y2=middle), class_="axis"),
        element("g", *stems, class_="stems"),
        height=_OFF_PX,
        label=f"Residuals of link {link.name}: {told}",
    )


def _apart(low: float, high: float) -> tuple[float, float]:
    """Never the same, so that there is a way between them."""
    return (low, high) if high > low * 1.01 else (low / 2, high * 2)


def _place(value: float, ends: tuple[float, float]) -> float:
    """As a share of the way between them, with room at both."""
    low, high = (math.log(end) for end in ends)
    return _PAD + (1 - 2 * _PAD) * (math.log(value) - low) / (high - low)


def _round_size(size_bytes: float) -> str:
    return size_text(round(size_bytes)).replace(".0 ", " ")
