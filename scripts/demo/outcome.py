"""What came out: the table and the verdict. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import comb
from statistics import mean, median
from typing import Any, Final

ALONE, STOCK, FP16, OURS, EXACT = "alone", "stock", "fp16", "ours", "exact"
TITLES: Final[Mapping[str, str]] = {
    ALONE: "computing alone",
    STOCK: "stock Horovod",
    FP16: "stock, Compression.fp16",
    OURS: "ours",
    EXACT: "ours, accuracy='exact'",
}
# Options of ours. The first has none: that is what two changed lines give.
OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {OURS: {}, EXACT: {"accuracy": "exact"}}
CONFIDENCE: Final = 0.95
# In the folder of results.
COMPARISON_FILE: Final = "comparison.json"
OUTCOME_FILE: Final = "outcome.json"
_LAST: Final = 10  # losses that are averaged
_SAME: Final = 0.02  # ratios that differ less from 1 are called equal


@dataclass(frozen=True)
class Trained:
    """By one optimizer."""

    rounds_ms: Sequence[Sequence[float]]  # of each counted step, by round; of the slowest rank
    losses: Sequence[float]  # of every step, mean of the ranks
    replicas_equal: bool
    runs: str = ""  # what `auto` chose

    @property
    def step_ms(self) -> float:
        return median(step for one in self.rounds_ms for step in one)


@dataclass(frozen=True)
class Outcome:
    """Of all of them."""

    link: str
    ranks: int
    gradient_bytes: int
    arms: Mapping[str, Trained]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        fields = json.loads(text)
        arms = {name: Trained(**one) for name, one in fields.pop("arms").items()}
        return cls(**fields, arms=arms)

    @property
    def steps(self) -> int:
        """That all of them have trained; ours go on for longer, until they have chosen."""
        return min(len(arm.losses) for arm in self.arms.values())

    def speedups(self, name: str) -> list[float]:
        """How many times as fast as stock Horovod, round by round."""
        pairs = zip(self.arms[STOCK].rounds_ms, self.arms[name].rounds_ms, strict=True)
        return [median(before) / median(now) for before, now in pairs]

    def loss(self, name: str) -> float:
        """After as many steps as all have trained."""
        return mean(self.arms[name].losses[: self.steps][-_LAST:])

    def same_losses(self, name: str) -> bool:
        """As stock Horovod, in every step, bit for bit."""
        return self.arms[name].losses[: self.steps] == self.arms[STOCK].losses[: self.steps]


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """(low, high, confidence) of the median, whatever the distribution: the closest pair of order
    statistics that holds it with `CONFIDENCE`, or the extremes with what confidence they have."""
    ordered, n = sorted(values), len(values)
    outside, cut = 2.0 * 0.5**n, 0
    while 2 * (cut + 1) < n:
        more = outside + 2.0 * comb(n, cut + 1) * 0.5**n
        if more > 1.0 - CONFIDENCE:
            break
        outside, cut = more, cut + 1
    return ordered[cut], ordered[n - 1 - cut], max(0.0, 1.0 - outside)


def table(outcome: Outcome) -> str:
    """A row for each."""
    alone_ms = outcome.arms[ALONE].step_ms
    rows = [("", "step", "waiting", "times as fast", "loss", "")]
    for name, title in TITLES.items():
        arm = outcome.arms[name]
        speed = ""
        if name not in (STOCK, ALONE):
            low, high, _ = median_interval(outcome.speedups(name))
            speed = f"{median(outcome.speedups(name)):.2f} ({low:.2f} .. {high:.2f})"
        waiting = "" if name == ALONE else f"{max(0.0, arm.step_ms - alone_ms):.0f} ms"
        loss = "" if name == ALONE else f"{outcome.loss(name):.4f}"
        what = f"chose {arm.runs}" if arm.runs else ""
        step = f"{arm.step_ms:.0f} ms"
        rows.append((title, step, waiting, speed, loss, what if arm.replicas_equal else "BROKEN"))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        lines.append("  ".join(cell.ljust(width) for cell, width in cells).rstrip())
    return "\n".join(lines)


def legend(outcome: Outcome) -> str:
    """What the columns mean."""
    rounds = len(outcome.arms[STOCK].rounds_ms)
    confidence = median_interval(outcome.speedups(OURS))[2]
    return (
        f"step: median over {rounds} rounds in turn; waiting: what it takes longer than computing\n"
        "times as fast: as stock Horovod, median of the rounds "
        f"({confidence:.0%} interval of that)\n"
        f"loss: mean of steps {max(1, outcome.steps - _LAST + 1)} to {outcome.steps},"
        " on the same batches"
    )


def verdict(outcome: Outcome) -> str:
    """What it comes to; true whatever was measured."""
    broken = [TITLES[name] for name, arm in outcome.arms.items() if not arm.replicas_equal]
    if broken:
        return f"Verdict: replicas differ between ranks ({', '.join(broken)}). That is a bug."
    parts = [
        f"ours {_speed(outcome, OURS)}, {_losses(outcome, OURS)}",
        f"with accuracy='exact' it {_speed(outcome, EXACT)}, {_losses(outcome, EXACT)}",
    ]
    fp16 = f"Stock Horovod with Compression.fp16 {_speed(outcome, FP16)}."
    return f"Verdict: {'; '.join(parts)}. {fp16}"


def _speed(outcome: Outcome, name: str) -> str:
    found = outcome.speedups(name)
    low, high, _ = median_interval(found)
    if abs(median(found) - 1.0) < _SAME or low < 1.0 < high:
        return f"is about as fast as stock Horovod ({low:.2f} .. {high:.2f} times)"
    return f"is {median(found):.2f} times as fast as stock Horovod ({low:.2f} .. {high:.2f})"


def _losses(outcome: Outcome, name: str) -> str:
    if outcome.same_losses(name):
        return f"with the same loss in each of {outcome.steps} steps, bit for bit"
    change = outcome.loss(name) / outcome.loss(STOCK) - 1.0
    return f"with a loss {100.0 * abs(change):.2f} % {'higher' if change > 0.0 else 'lower'}"
