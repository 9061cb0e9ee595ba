"""What a comparison says: a row for each that took part."""

from __future__ import annotations

from typing import Any, Final

from rich.table import Table

from deft_horovod.comparison.comparison import Comparison
from deft_horovod.comparison.text import updates_text, verdict

_MS: Final = 1e-3


def rendered(comparison: Comparison) -> Table:
    """All that took part, for a person."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column("\npolicy")
    for title in (
        "step\nms",
        "four of five\nms",
        "exposed\nms",
        "\nshare",
        f"of {comparison.baseline.policy}'s\nspeed",
    ):
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
            updates_text(arm),
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
                "updates": updates_text(arm),
            }
            for arm in comparison.arms
        ],
    }
