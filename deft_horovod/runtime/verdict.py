"""The lines that rank 0 writes: what was measured, what is gained, how late updates come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from deft_horovod.plan import Plan
from deft_horovod.profile import Profile
from deft_horovod.runtime.course import STOCK
from deft_horovod.solver.staleness import staleness

_MS = 1e-3


def lateness(plan: Plan) -> str:
    """A warning for plans that delay or merge updates."""
    delay = max(g.delay for g in plan.generations)
    merged = max(g.merged for g in plan.generations)
    lag = f"come up to {delay} step{'' if delay == 1 else 's'} late"
    carry = f"carry up to {merged} steps"
    how = " and ".join(text for text, is_so in ((lag, delay > 0), (carry, merged > 1)) if is_so)
    return (
        f"deft_horovod: updates may {how}; they are not corrected, so accuracy may differ from "
        "synchronous training (max_delay=0 and max_merge=1 give that)"
    )


def verdict(
    profile: Profile, plan: Plan | None, step_us: float, trials_us: Mapping[tuple[str, bool], float]
) -> str:
    """What the job does now, against stock Horovod in the same job, in one line."""
    compute, now = profile.compute_us * _MS, step_us * _MS
    before = trials_us.get((STOCK, False), profile.step_us) * _MS
    sizes = Counter() if plan is None else _bytes_of_step(plan)
    cost = profile.link
    sent = cost.beta_us_per_byte * sum(sizes.values()) * _MS if cost is not None else 0.0
    parts = [
        f"compute {compute:.1f} ms",
        f"communication {sent:.1f} ms" if sizes else "",
        f"exposed {max(0.0, before - compute):.1f} -> {max(0.0, now - compute):.1f} ms",
        f"step {before:.1f} -> {now:.1f} ms ({before / now if now else 1.0:.2f}x of stock)",
        _staleness(sizes),
        _trials(trials_us),
    ]
    name = plan.policy if plan is not None else "stock Horovod is kept"
    return f"deft_horovod: {name}: {', '.join(part for part in parts if part)}"


def _trials(trials_us: Mapping[tuple[str, bool], float]) -> str:
    if not trials_us:
        return ""
    shown = (
        f"{name}{' (late)' if late else ''} {us * _MS:.1f}"
        for (name, late), us in trials_us.items()
    )
    return f"tried, in ms: {' '.join(shown)}"


def _bytes_of_step(plan: Plan) -> Counter[tuple[int, int]]:
    """Bytes of one step's gradients by (delay, merged steps); a gate makes nothing late."""
    sizes: Counter[tuple[int, int]] = Counter()
    for part in staleness(plan):
        sizes[part.delay, part.merged] += part.bytes
    return sizes


def _staleness(sizes: Mapping[tuple[int, int], int]) -> str:
    total = sum(sizes.values())
    late = {key: size for key, size in sizes.items() if key != (0, 1)}
    if not total:
        return ""
    if not late:
        return "every update in time"
    parts = [
        f"{100 * size / total:.0f} % of the bytes {delay} late"
        + (f", {merged} steps at once" if merged > 1 else "")
        for (delay, merged), size in sorted(late.items())
    ]
    return "; ".join(parts)
