"""The lines that rank 0 writes: what was measured, what is gained, how late updates come."""

from __future__ import annotations

from collections.abc import Mapping

from deft_horovod.parameter import WIRE_ITEM_BYTES
from deft_horovod.plan import Plan
from deft_horovod.profile import Profile
from deft_horovod.runtime.course import STOCK

_MS = 1e-3


def trial_line(
    times_us: Mapping[tuple[str, bool], float],
    chosen: tuple[str, bool],
    profile: Profile | None,
) -> str:
    """The outcome of the trials, in one line."""
    before, after = times_us[STOCK, False], times_us[chosen]
    compute = profile.compute_us if profile is not None else 0.0
    name = chosen[0] + (" with late updates" if chosen[1] else "")
    others = ", ".join(
        f"{key[0]}{' (late)' if key[1] else ''} {us * _MS:.1f}" for key, us in times_us.items()
    )
    exposed = ""
    if profile is not None:
        exposed = (
            f"compute {compute * _MS:.1f} ms, exposed "
            f"{max(0.0, before - compute) * _MS:.1f} -> {max(0.0, after - compute) * _MS:.1f} ms, "
        )
    what = "stock Horovod is kept: nothing gains enough" if chosen[0] == STOCK else f"runs {name}"
    gain = f"step {before * _MS:.1f} -> {after * _MS:.1f} ms ({before / after:.2f}x)"
    return f"deft_horovod: {what}; {exposed}{gain}; measured a step in ms: {others}"


def lateness(plan: Plan) -> str:
    """A warning for plans that delay or merge updates."""
    delay = max(g.apply_step - g.last_step for g in plan.generations)
    merged = max(g.last_step - g.first_step + 1 for g in plan.generations)
    lag = f"come up to {delay} step{'' if delay == 1 else 's'} late"
    carry = f"carry up to {merged} steps"
    how = " and ".join(text for text, is_so in ((lag, delay > 0), (carry, merged > 1)) if is_so)
    return (
        f"deft_horovod: updates may {how}; they are not corrected, so accuracy may differ from "
        "synchronous training (max_delay=0 and max_merge=1 give that)"
    )


def settled_line(profile: Profile, plan: Plan | None, step_us: float) -> str:
    """What the job does now, against what it did while the profile was taken, in one line."""
    compute, before = profile.compute_us * _MS, profile.step_us * _MS
    sent = 0.0
    late = "every update in time"
    if plan is not None and profile.link is not None:
        sizes = _bytes_of_step(plan)
        sent = profile.link.beta_us_per_byte * sum(sizes.values()) * _MS
        late = _staleness(sizes)
    now = step_us * _MS
    return (
        f"deft_horovod: {plan.policy if plan is not None else STOCK}: compute {compute:.1f} ms, "
        f"communication {sent:.1f} ms, exposed {max(0.0, before - compute):.1f} -> "
        f"{max(0.0, now - compute):.1f} ms, step {before:.1f} -> {now:.1f} ms "
        f"({before / now if now else 1.0:.2f}x of stock), {late}"
    )


def _bytes_of_step(plan: Plan) -> dict[tuple[int, int], float]:
    """Bytes of one step's gradients by (delay, merged steps)."""
    sizes: dict[tuple[int, int], float] = {}
    for generation in plan.generations:
        bucket = plan.buckets[generation.bucket]
        item = WIRE_ITEM_BYTES[plan.arenas[bucket.arena].wire]
        merged = generation.last_step - generation.first_step + 1
        key = (generation.apply_step - generation.last_step, merged)
        share = merged / plan.period  # of the steps of a cycle that it carries
        sizes[key] = sizes.get(key, 0.0) + share * item * (bucket.end - bucket.begin)
    return sizes


def _staleness(sizes: Mapping[tuple[int, int], float]) -> str:
    total = sum(sizes.values())
    late = {key: size for key, size in sizes.items() if key != (0, 1)}
    if not late or not total:
        return "every update in time"
    parts = [
        f"{100 * size / total:.0f} % of the bytes {delay} late"
        + (f", {merged} steps at once" if merged > 1 else "")
        for (delay, merged), size in sorted(late.items())
    ]
    return "; ".join(parts)
