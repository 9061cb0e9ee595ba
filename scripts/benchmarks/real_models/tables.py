"""What the arms did, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any, Final

from scripts.benchmarks.encoded import spread

ALONE: Final = "alone"  # without communication

Found = Mapping[str, Mapping[str, Any]]  # by arm


def table(found: Found) -> list[str]:
    """Times, and the ratios to stock."""
    lines = [
        "| arm | ms a step | of stock | stock / it | predicted | loss | what runs |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    stock = found["stock"]["times_ms"] if "stock" in found else None
    for name, one in found.items():
        times = one["times_ms"]
        cells = [name, spread(times, ".0f"), "", "", predicted(one)]
        cells += [f"{one['loss']:.3f}", running(one["stats"])]
        if stock is not None:
            cells[2] = spread([t / s for t, s in zip(times, stock, strict=True)], ".2f")
            cells[3] = f"{median(s / t for t, s in zip(times, stock, strict=True)):.2f}"
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def cpu_table(found: Found) -> list[str]:
    """CPU time of a step by owner, the median of the rounds; and what is left of the step, in which
    no thread of the rank ran or another rank had the core."""
    owners = list(dict.fromkeys(o for one in found.values() for cpu in one["cpu_ms"] for o in cpu))
    lines = [
        f"| CPU ms a step | {' | '.join(owners)} | step less all that |",
        f"| --- |{' --- |' * (len(owners) + 1)}",
    ]
    for name, one in found.items():
        taken = {owner: median(cpu.get(owner, 0.0) for cpu in one["cpu_ms"]) for owner in owners}
        rest_ms = median(
            step - sum(cpu.values())
            for step, cpu in zip(one["times_ms"], one["cpu_ms"], strict=True)
        )
        cells = [f"{taken[owner]:.0f}" for owner in owners]
        lines.append(f"| {name} | {' | '.join(cells)} | {rest_ms:.0f} |")
    return lines


def tuning_table(found: Mapping[str, Found]) -> list[str]:
    """By setting: what stock Horovod takes, and of computing alone in the same job."""
    lines = ["| stock Horovod with | ms a step | of computing alone |", "| --- | --- | --- |"]
    for title, arms in found.items():
        times, alone = arms["stock"]["times_ms"], arms[ALONE]["times_ms"]
        ratios = [t / a for t, a in zip(times, alone, strict=True)]
        lines.append(f"| {title} | {spread(times, '.0f')} | {spread(ratios, '.2f')} |")
    return lines


def predicted(one: Mapping[str, Any]) -> str:
    """The step that the plan was expected to take, and how far that is off."""
    prediction = one["stats"].get("prediction")
    if prediction is None:
        return ""
    step_ms = 1e-3 * prediction["step_us"]
    return f"{step_ms:.0f} ({step_ms / median(one['times_ms']) - 1.0:+.0%})"


def running(stats: Mapping[str, Any]) -> str:
    """The policy, and the share of each format."""
    formats = stats.get("formats") or {}
    total = sum(sizes["bytes"] for sizes in formats.values()) or 1
    parts = [f"{100 * sizes['bytes'] / total:.0f} % {one}" for one, sizes in formats.items()]
    return ", ".join([str(stats.get("running", "")), *parts]).strip(", ")
