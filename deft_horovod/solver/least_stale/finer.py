"""Finer: a plan that rounds more than it has to, with as much as possible as it is. Ours.

What is ready first has the most time to travel, so formats are finer up to some bucket in the order
of readiness, and that bucket is looked for by halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deft_horovod.base.wire_format import EXACT, WireFormat
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import bucket_bytes
from deft_horovod.profile import Profile
from deft_horovod.solver.least_stale.refine import with_margin
from deft_horovod.solver.least_stale.solve import TOLERANCE
from deft_horovod.solver.predict.timeline import bucket_moments, simulate
from deft_horovod.solver.problem import Limits, margin_of


def as_fine_as_free(plan: Plan, profile: Profile, limits: Limits) -> Plan:
    """No slower by more than can be measured, also if every message took longer by the margin. What
    was predicted is left out."""
    judge = with_margin(profile, margin_of(profile, sum(bucket_bytes(plan)), limits))

    def steps_us(one: Plan) -> tuple[float, float]:
        return simulate(one, profile).step_us, simulate(one, judge).step_us

    most_us = [us + TOLERANCE * profile.compute_us for us in steps_us(plan)]

    def fits(other: Plan) -> bool:
        return all(us <= most for us, most in zip(steps_us(other), most_us, strict=True))

    ready_us, _ = bucket_moments(plan.slots, plan.buckets, profile)
    measured = [f for f in limits.formats if all(link.cost_in(f) for link in profile.links)]
    found = finer(plan, ready_us, measured, fits)
    return found.model_copy(update={"prediction": None})


def finer(
    plan: Plan,
    ready_us: Sequence[float],
    formats: Sequence[WireFormat],
    fits: Callable[[Plan], bool],
) -> Plan:
    """The same messages. `ready_us`: of each bucket; `formats`: the least harmful first; `fits`
    holds for the plan as it is."""
    rounded = [i for i, bucket in enumerate(plan.buckets) if bucket.format != EXACT]
    left = sorted(rounded, key=lambda bucket: ready_us[bucket])
    for wire_format in (EXACT, *formats):
        enough, too_many = 0, len(left) + 1
        while too_many - enough > 1:
            count = (enough + too_many) // 2
            tried = _with(plan, left[:count], wire_format)
            enough, too_many = (count, too_many) if fits(tried) else (enough, count)
        plan = _with(plan, left[:enough], wire_format)
        left = left[enough:]
    return plan


def _with(plan: Plan, chosen: Sequence[int], wire_format: WireFormat) -> Plan:
    buckets = list(plan.buckets)
    for index in chosen:
        buckets[index] = buckets[index].model_copy(update={"format": wire_format})
    return plan.model_copy(update={"buckets": tuple(buckets)})
