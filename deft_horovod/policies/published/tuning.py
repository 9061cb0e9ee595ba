"""Tuning: of several plans the one that is predicted to be the fastest.

The papers tune sizes in the running job, by Bayesian optimisation: ten to fifteen settings, tens of
steps each. Here each setting is one simulated timeline of the measured profile, so that all ranks
choose alike and no step is spent on a bad setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from deft_horovod.plan import Plan
from deft_horovod.profile import Profile
from deft_horovod.solver.predict.costs import busy_us, task_times_us
from deft_horovod.solver.predict.timeline import simulate

# The published ranges (2 to 64 M elements, 1 to 256 MB) are meant for models of hundreds of
# megabytes. As shares of the model they fit any.
_SHARES: Final = 64
_SMALLEST_BYTES: Final = 4096


def sizes_bytes(total_bytes: int) -> list[int]:
    """What is tried: from the whole model down, each half of the one before."""
    found = []
    size = max(_SMALLEST_BYTES, total_bytes)
    while size >= max(_SMALLEST_BYTES, total_bytes // _SHARES):
        found.append(size)
        size //= 2
    return found


def piece_sizes_bytes(gradients_bytes: Sequence[int]) -> list[int]:
    """What is tried where no message carries parts of two gradients: sizes above the largest
    gradient cut nothing, so they are all alike."""
    largest = max(gradients_bytes)
    return list(dict.fromkeys(min(size, largest) for size in sizes_bytes(sum(gradients_bytes))))


def fastest(plans: Iterable[Plan], profile: Profile) -> Plan:
    """The first one of those that no other beats."""
    return fastest_place(plans, profile)[1]


def fastest_place(plans: Iterable[Plan], profile: Profile) -> tuple[int, Plan]:
    """The same with its place among them. No other is kept, so they may be made one by one.

    Simulated is only what could win: not what computing alone, or a link alone, takes as long for
    as the best so far takes in all.
    """
    best: tuple[float, int, Plan] | None = None
    for place, plan in enumerate(plans):
        if best is not None and _least_step_us(plan, profile) >= best[0]:
            continue
        step_us = simulate(plan, profile).step_us
        if best is None or step_us < best[0]:
            best = step_us, place, plan
    if best is None:
        raise ValueError("there is no plan to choose from")
    return best[1:]


def _least_step_us(plan: Plan, profile: Profile) -> float:
    links_us = busy_us(plan, task_times_us(plan, profile))
    return max(profile.compute_us, max(links_us, default=0.0) / plan.period)
