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
    return min(plans, key=lambda plan: simulate(plan, profile).step_us)
