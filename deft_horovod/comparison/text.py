"""What a comparison comes to, in words."""

from __future__ import annotations

from typing import Final

from deft_horovod.comparison.comparison import Arm, Comparison
from deft_horovod.plan.staleness_text import IN_TIME, staleness_text

_MS: Final = 1e-3


def verdict(comparison: Comparison) -> str:
    """What it comes to, in one line."""
    before, ours = comparison.baseline, comparison.ours
    if ours is before:
        others = [arm for arm in comparison.arms if arm is not before]
        best = max(others, key=comparison.speedup, default=before)
        return (
            f"{comparison.baseline_name} is kept: the best of the others, {best.name}, was "
            f"{comparison.speedup(best):.2f}x as fast; step {_ms(before)}, of which communication "
            f"exposed {comparison.exposed_share(before):.0%}"
        )
    shares = [comparison.exposed_share(arm) for arm in (before, ours)]
    speedups = comparison.speedups(ours)
    spread = f"{min(speedups):.2f} .. {max(speedups):.2f} in {len(speedups)} rounds"
    parts = [
        f"communication exposed {shares[0]:.0%} -> {shares[1]:.0%}",
        f"step {before.step_us * _MS:.1f} -> {_ms(ours)}",
        f"{comparison.speedup(ours):.2f}x ({spread})",
        staleness_text(ours.plan) if ours.plan is not None else "",
    ]
    return f"{ours.name}: {', '.join(part for part in parts if part)}"


def updates_text(arm: Arm) -> str:
    """How late its updates come, for a cell of a table."""
    late = "" if arm.plan is None else staleness_text(arm.plan)
    return "in time" if late in ("", IN_TIME) else late


def _ms(arm: Arm) -> str:
    return f"{arm.step_us * _MS:.1f} ms"
