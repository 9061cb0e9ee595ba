"""What a comparison says: the verdict, and a row for each that took part."""

from __future__ import annotations

from typing import Any, Final

from rich.table import Table

from deft_horovod.comparison import Arm, Comparison
from deft_horovod.staleness_text import staleness_text

_MS: Final = 1e-3


def verdict(comparison: Comparison) -> str:
    """What it comes to, in one line."""
    stock, ours = comparison.stock, comparison.ours
    if ours is stock:
        others = [arm for arm in comparison.arms if arm is not stock]
        best = max(others, key=comparison.speedup, default=stock)
        return (
            f"stock Horovod is kept: the best of the others, {best.name}, was "
            f"{comparison.speedup(best):.2f}x as fast; step {_ms(stock)}, of which communication "
            f"exposed {comparison.exposed_share(stock):.0%}"
        )
    shares = [comparison.exposed_share(arm) for arm in (stock, ours)]
    speedups = comparison.speedups(ours)
    spread = f"{min(speedups):.2f} .. {max(speedups):.2f} in {len(speedups)} rounds"
    parts = [
        f"communication exposed {shares[0]:.0%} -> {shares[1]:.0%}",
        f"step {stock.step_us * _MS:.1f} -> {_ms(ours)}",
        f"{comparison.speedup(ours):.2f}x ({spread})",
        staleness_text(ours.plan) if ours.plan is not None else "",
    ]
    return f"{ours.name}: {', '.join(part for part in parts if part)}"


def rendered(comparison: Comparison) -> Table:
    """All that took part, for a person."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column("\npolicy")
    for title in ("step\nms", "four of five\nms", "exposed\nms", "\nshare", "of stock's\nspeed"):
        shown.add_column(title, justify="right", no_wrap=True)
    shown.add_column("\nupdates", overflow="fold")
    for arm in comparison.arms:
        low_us, high_us = arm.spread_us
        shown.add_row(
            arm.name,
            f"{arm.step_us * _MS:.1f}",
            f"{low_us * _MS:.1f} .. {high_us * _MS:.1f}",
            f"{comparison.exposed_us(arm) * _MS:.1f}",
            f"{comparison.exposed_share(arm):.0%}",
            f"{comparison.speedup(arm):.2f}",
            _updates(arm),
        )
    return shown


def to_data(comparison: Comparison) -> dict[str, Any]:
    """The same for a program."""
    return {
        "verdict": verdict(comparison),
        "policy": comparison.policy,
        "chosen": comparison.ours.name,
        "ranks": comparison.profile.size,
        "compute_us": comparison.profile.compute_us,
        "speedup": comparison.speedup(comparison.ours),
        "arms": [
            {
                "name": arm.name,
                "step_us": arm.step_us,
                "spread_us": arm.spread_us,
                "exposed_us": comparison.exposed_us(arm),
                "speedup": comparison.speedup(arm),
                "speedups": comparison.speedups(arm),
                "updates": _updates(arm),
            }
            for arm in comparison.arms
        ],
    }


def _ms(arm: Arm) -> str:
    return f"{arm.step_us * _MS:.1f} ms"


def _updates(arm: Arm) -> str:
    return "every update in time" if arm.plan is None else staleness_text(arm.plan)
