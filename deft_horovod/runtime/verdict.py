"""The lines that rank 0 writes: what was measured, what is gained, how late updates come."""

from __future__ import annotations

from collections.abc import Mapping

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
