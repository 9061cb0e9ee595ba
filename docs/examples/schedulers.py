"""One small model under every policy: the table and the pictures of docs/guide/schedulers.md.

python docs/examples/schedulers.py [folder]

prints what each policy is predicted to do and, given a folder, draws a picture of each into it
(NAME.svg). No cluster, no torch, no Horovod.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, indent, tostring

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.picture.bars import (
    CLASS_COLOURS,
    DARK_KINDS,
    STAGE_COLOURS,
    WAIT_COLOUR,
    WAITING,
    Bar,
    plan_bars,
    stock_bars,
)
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.plan.rules import ALIGN_BYTES
from deft_horovod.plan.staleness import mean_staleness, staleness, updates_per_step
from deft_horovod.policies import Request, get
from deft_horovod.profile import FormatCost, LinkCost, Profile
from deft_horovod.report.basics.markup import element
from deft_horovod.simulate.outlook import play
from deft_horovod.simulate.stock import StockMessage, StockStep, simulate_stock
from deft_horovod.solver.predict.timeline import SimulatedMessage, Timeline

# Layer 1 is used first, and its gradient is ready last.
MEGABYTES = (4, 20, 32, 4, 4)
FORWARD_MS = (8, 5, 2, 2, 5)
BACKWARD_MS = (16, 10, 6, 1, 11)
WIRE = ("float32", "float32", "cpu")
LAYERS = range(len(MEGABYTES))
COST = LinkCost(alpha_us=2000, beta_us_per_byte=0.001)  # 2 ms, and 1 ms for each MB
INT8 = LinkCost(alpha_us=2000, beta_us_per_byte=0.00026)
SIZES: dict[str, Any] = {
    "bucket_bytes": "24MB",
    "first_bucket_bytes": "4MB",
    "partition_bytes": "8MB",
    "credit_bytes": "16MB",
}
# `auto` has no plan of its own: it keeps the fastest of some of these.
POLICIES = (
    *("stock", "wfbp", "ddp", "bucket", "mgwfbp", "p3", "bytescheduler"),
    *("bytescheduler, tune=false", "priority", "usbyte", "dcredit", "dear", "least_stale"),
    *("least_stale, max_delay=1", "fewest_bytes", "sapipe", "covap", "deft"),
)
OPTIONS = {"fewest_bytes": {"accuracy": "equal"}}  # without it nothing travels in fewer bytes
# Whose picture is not named after the policy: with sizes of its own choice ByteScheduler cuts
# nothing here.
PICTURES: dict[str, str | None] = {
    "bytescheduler": None,
    "bytescheduler, tune=false": "bytescheduler.svg",
    "least_stale, max_delay=1": "least_stale-late.svg",
}

HALVES = {"reduce_scatter": "reduce-scatter", "all_gather": "all-gather"}  # gated, both of them
COLOURS = {
    **STAGE_COLOURS,
    **CLASS_COLOURS,
    "reduce-scatter": CLASS_COLOURS["gated"],
    "all-gather": "#b9e2dc",
    WAITING: "url(#waiting)",
}
INK, FAINT = "#1b2430", "#566375"
WIDTH_PX, EDGE_PX = 560, 12
LINE_MS = 110  # of a line of a picture; all of them have the same scale
ROW_PX, ROWS_PX, LINE_PX, TITLE_PX, LEGEND_PX = 30, 36, 104, 34, 30
TITLE_LETTERS_PX, LABELS_PX, LETTERS_PX = 17, 15, 14
LETTER_PX = 9.0  # the width of a letter of a label, with some air


def model() -> tuple[tuple[Parameter, ...], Profile]:
    """A gradient of 4 MB is one that travels as 4,000,000 bytes, its header of 16 included."""
    parameters = tuple(
        Parameter(f"layer{i + 1}", (1_000_000 * size - ALIGN_BYTES) // 4, *WIRE)
        for i, size in enumerate(MEGABYTES)
    )
    (link,) = Profile.link_of(COST)
    profile = Profile(
        ready_order=tuple(reversed(LAYERS)),
        ready_us=tuple(1000 * sum(BACKWARD_MS[i:]) for i in LAYERS),
        first_use_us=tuple(1000 * sum(FORWARD_MS[:i]) for i in LAYERS),
        forward_us=1000 * sum(FORWARD_MS),
        backward_us=1000 * sum(BACKWARD_MS),
        links=(link.model_copy(update={"formats": (FormatCost(format="int8", cost=INT8),)}),),
    )
    return parameters, profile


@dataclass(frozen=True)
class Outcome:
    """What one policy is predicted to do."""

    title: str
    plan: Plan
    played: StockStep | Timeline
    profile: Profile

    @property
    def file(self) -> str | None:
        return PICTURES.get(self.title, f"{self.title}.svg")

    @property
    def began_us(self) -> float:
        """The first backward of a period, since its forward began."""
        if isinstance(self.played, StockStep):
            return self.profile.forward_us
        spans = self.played.stages
        return next(span.begins_us for span in spans if span.stage == "backward")

    @property
    def messages(self) -> float:
        """That travel in a step."""
        return len(self.played.messages) / self.plan.period

    @property
    def sentence(self) -> str:
        return f"Predicted step: {_short(self)}."

    def travels(self) -> list[tuple[str, float, float]]:
        """(layers, start, arrival) of the messages of a period, by start. Times are milliseconds
        since the first backward of the period began."""
        began_us = 0.0 if isinstance(self.played, StockStep) else self.began_us
        names = self._names()
        messages: Sequence[StockMessage | SimulatedMessage] = self.played.messages
        found = [
            (name, (one.starts_us - began_us) / 1000, (one.arrives_us - began_us) / 1000)
            for name, one in zip(names, messages, strict=True)
        ]
        return sorted(found, key=lambda one: one[1])

    def _names(self) -> list[str]:
        """The layers of each message, in the order of the backward that made them."""
        if not self.plan.tasks:
            members: list[tuple[int, ...]] = [(i,) for i in LAYERS]
        else:
            members = list(contents(self.plan.slots, self.plan.buckets))
        if isinstance(self.played, StockStep):
            carried = [
                {layer for member in message.members for layer in members[member]}
                for message in self.played.messages
            ]
        else:
            generations = self.plan.generations
            carried = [
                set(members[generations[self.plan.tasks[one.task].generation].bucket])
                for one in self.played.messages
            ]
        return ["+".join(str(i + 1) for i in sorted(one, reverse=True)) for one in carried]

    def bars(self, duration_us: float) -> Iterator[Bar]:
        """As the project draws them, with the numbers of layers as labels."""
        names = self._names()
        if isinstance(self.played, StockStep):
            for bar in stock_bars(self.played, self.profile, duration_us, names):
                yield replace(bar, label=bar.detail.split(",")[0])
            return
        waiting = replace(self.played, messages=())
        yield from plan_bars(self.plan, waiting, duration_us)
        for name, message in zip(names, self.played.messages, strict=True):
            alone = replace(self.played, messages=(message,), stages=(), waits=())
            op = self.plan.tasks[message.task].op
            for bar in plan_bars(self.plan, alone, duration_us):
                yield replace(bar, label=name, kind=HALVES.get(op, bar.kind))


def outcome(title: str) -> Outcome:
    """`title`: a policy, and perhaps an option behind it."""
    parameters, profile = model()
    name, _, option = title.partition(", ")
    options: dict[str, Any] = dict([option.split("=")]) if option else OPTIONS.get(name, {})
    plan = get(name).plan(Request(parameters, profile, Config(**SIZES, **options)))
    played = play(plan, profile) if plan.tasks else simulate_stock(parameters, profile)
    return Outcome(title, plan, played, profile)


def table(outcomes: Iterable[Outcome]) -> str:
    head = f"{'policy':26}{'step':>6}{'waiting':>9}{'messages':>10}{'late':>7}{'updates':>9}"
    return "\n".join([head, *map(_row, outcomes)])


def _row(one: Outcome) -> str:
    step_ms, exposed_ms = one.played.step_us / 1000, one.played.exposed_us / 1000
    late, updates = mean_staleness(staleness(one.plan)), updates_per_step(one.plan)
    row = f"{one.title:26}{step_ms:6.1f}{exposed_ms:9.1f}{one.messages:10.1f}"
    return f"{row}{late:7.2f}{updates:9.2f}"


# --- pictures ----------------------------------------------------------------------------------
def picture(one: Outcome) -> str:
    """A whole period from its first backward on, in as many lines as it takes."""
    period_us = one.played.period_us if isinstance(one.played, Timeline) else one.played.step_us
    lines = math.ceil(period_us / (1000 * LINE_MS))
    all_bars = list(one.bars(1000.0 * LINE_MS * lines + one.began_us))
    bars = [
        replace(bar, begins_us=bar.begins_us - one.began_us, ends_us=bar.ends_us - one.began_us)
        for bar in (*_by_layer(b for b in all_bars if b.row == 0), *(b for b in all_bars if b.row))
    ]
    height = TITLE_PX + LINE_PX * lines + LEGEND_PX
    drawn = element(
        "svg",
        _pattern(),
        element("rect", width=WIDTH_PX, height=height, fill="#ffffff"),
        _text(f"{one.title}: {_short(one)}", EDGE_PX, 22, TITLE_LETTERS_PX),
        *(_line(bars, number) for number in range(lines)),
        _legend({bar.kind for bar in bars}, height),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH_PX} {height}",
        width=WIDTH_PX,
        height=height,
        font_family="system-ui, Segoe UI, Liberation Sans, Arial, sans-serif",
        fill=INK,
    )
    indent(drawn)
    return tostring(drawn, encoding="unicode") + "\n"


def _short(one: Outcome) -> str:
    step_ms = round(one.played.step_us / 1000, 1)
    exposed_ms = round(one.played.exposed_us / 1000, 1)
    return f"{step_ms:g} ms, " + (
        f"{exposed_ms:g} ms of it waiting" if exposed_ms else "no waiting"
    )


def _by_layer(bars: Iterable[Bar]) -> Iterator[Bar]:
    """Stages are cut into layers; where one waits inside a stage it stays as it is."""
    left: dict[tuple[int | None, str], list[tuple[int, float]]] = {}
    for bar in sorted(bars, key=lambda bar: bar.begins_us):
        if bar.kind not in ("forward", "backward"):
            yield bar
            continue
        takes_ms = FORWARD_MS if bar.kind == "forward" else BACKWARD_MS
        order = LAYERS if bar.kind == "forward" else reversed(LAYERS)
        rest = left.setdefault((bar.step, bar.kind), [(i, 1000.0 * takes_ms[i]) for i in order])
        now_us = bar.begins_us
        while rest and now_us < bar.ends_us - 1.0:
            layer, time_us = rest.pop(0)
            ends_us = min(bar.ends_us, now_us + time_us)
            yield replace(bar, begins_us=now_us, ends_us=ends_us, label=str(layer + 1), step=None)
            if time_us - (ends_us - now_us) > 1.0:
                rest.insert(0, (layer, time_us - (ends_us - now_us)))
            now_us = ends_us


def _line(bars: Sequence[Bar], number: int) -> Element:
    begin_us = 1000.0 * LINE_MS * number
    end_us = begin_us + 1000.0 * LINE_MS
    parts: list[Element] = []
    for tick_ms in range(0, LINE_MS + 1, 10):
        x = _x(1000.0 * tick_ms, 0.0)
        bottom = 2 * ROWS_PX
        parts.append(element("line", x1=x, x2=x, y1=0, y2=bottom, stroke="#d5dce5"))
        if tick_ms % 20 == 0 and tick_ms < LINE_MS:
            text = f"{tick_ms + LINE_MS * number}" + ("" if tick_ms else " ms")
            anchor = "middle" if tick_ms else "start"
            parts.append(_text(text, x, bottom + 16, LETTERS_PX, fill=FAINT, text_anchor=anchor))
    for bar in bars:
        from_us, to_us = max(bar.begins_us, begin_us), min(bar.ends_us, end_us)
        if from_us < to_us:
            shown = replace(bar, begins_us=from_us, ends_us=to_us)
            parts += _rectangle(shown, begin_us)
    return element("g", *parts, transform=f"translate(0 {TITLE_PX + number * LINE_PX})")


def _rectangle(bar: Bar, begin_us: float) -> Iterator[Element]:
    x, y = _x(bar.begins_us, begin_us), 3 + ROWS_PX * bar.row
    width = round(_x(bar.ends_us, begin_us) - x, 2)
    edge = WAIT_COLOUR if bar.kind == WAITING else "#ffffff"
    yield element("rect", x=x, y=y, width=width, height=ROW_PX, fill=COLOURS[bar.kind], stroke=edge)
    if bar.label and len(bar.label) * LETTER_PX <= width:
        colour = "#ffffff" if bar.kind in DARK_KINDS else INK
        middle = round(x + width / 2, 2)
        yield _text(bar.label, middle, y + 20, LABELS_PX, fill=colour, text_anchor="middle")


def _text(text: str, x: float, y: float, size_px: int, **attributes: object) -> Element:
    return element("text", text, x=x, y=y, font_size=size_px, **attributes)


def _x(time_us: float, begin_us: float) -> float:
    share = (time_us - begin_us) / (1000.0 * LINE_MS)
    return round(EDGE_PX + share * (WIDTH_PX - 2 * EDGE_PX), 2)


def _pattern() -> Element:
    """Hatching, for the time in which compute waits."""
    stripe = element("path", d="M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", stroke=WAIT_COLOUR)
    hatching = element("pattern", stripe, id="waiting", width=6, height=6)
    hatching.set("patternUnits", "userSpaceOnUse")
    return element("defs", hatching)


def _legend(kinds: set[str], height: int) -> Element:
    parts, x = [], float(EDGE_PX)
    for kind, colour in COLOURS.items():
        if kind not in kinds:
            continue
        edge = WAIT_COLOUR if kind == WAITING else colour
        swatch = {"width": 14, "height": 14, "fill": colour, "stroke": edge}
        parts.append(element("rect", x=x, y=height - 20, **swatch))
        parts.append(_text(kind, x + 19, height - 8, LETTERS_PX))
        x += 36 + 7.4 * len(kind)
    return element("g", *parts)


def main(folders: Sequence[str]) -> None:
    outcomes = [outcome(title) for title in POLICIES]
    print(table(outcomes))
    for folder in folders:
        for one in outcomes:
            if one.file:
                (Path(folder) / one.file).write_text(picture(one), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
