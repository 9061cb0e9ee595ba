"""The lines that rank 0 writes: what was measured, what is gained, how late updates come."""

from __future__ import annotations

from collections.abc import Mapping

from deft_horovod.comparison import BASELINES
from deft_horovod.peers import BASELINE
from deft_horovod.plan import Plan
from deft_horovod.plan.formats import is_encoded
from deft_horovod.plan.staleness_text import bytes_of_step, staleness_text
from deft_horovod.profile import Profile

_MS = 1e-3


def lateness_text(plan: Plan, correction: str) -> str:
    """A warning for plans that delay or merge updates."""
    delay = max(g.delay for g in plan.generations)
    merged = max(g.merged for g in plan.generations)
    lag = f"come up to {delay} step{'' if delay == 1 else 's'} late"
    carry = f"carry up to {merged} steps"
    how = " and ".join(text for text, is_so in ((lag, delay > 0), (carry, merged > 1)) if is_so)
    corrected = "are not corrected" if correction == "none" else f"are predicted ({correction})"
    return (
        f"deft_horovod: updates may {how}; they {corrected}, and accuracy may differ from "
        "synchronous training (max_delay=0 and max_merge=1 give that)"
    )


def verdict(
    profile: Profile, plan: Plan | None, step_us: float, trials_us: Mapping[tuple[str, bool], float]
) -> str:
    """What the job does now, against what it would do without us, in one line."""
    compute, now = profile.compute_us * _MS, step_us * _MS
    before = trials_us.get((BASELINE, False), profile.step_us) * _MS
    sent_bytes = 0 if plan is None else sum(bytes_of_step(plan).values())
    cost = profile.link
    sent = cost.beta_us_per_byte * sent_bytes * _MS if cost is not None else 0.0
    parts = [
        f"compute {compute:.1f} ms",
        f"communication {sent:.1f} ms" if sent_bytes else "",
        f"exposed {max(0.0, before - compute):.1f} -> {max(0.0, now - compute):.1f} ms",
        f"step {before:.1f} -> {now:.1f} ms ({before / now if now else 1.0:.2f}x of {BASELINE})",
        "" if plan is None else staleness_text(plan),
        "accuracy='exact' keeps all bits" if plan is not None and is_encoded(plan) else "",
        _trials(trials_us),
    ]
    name = plan.policy if plan is not None else f"{BASELINES[BASELINE]} is kept"
    return f"deft_horovod: {name}: {', '.join(part for part in parts if part)}"


def _trials(trials_us: Mapping[tuple[str, bool], float]) -> str:
    if not trials_us:
        return ""
    shown = (
        f"{name}{' (late)' if late else ''} {us * _MS:.1f}"
        for (name, late), us in trials_us.items()
    )
    return f"tried, in ms: {' '.join(shown)}"
