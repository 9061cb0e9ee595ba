"""Bounds: what no plan within the limits can beat, whatever its messages, order and period.

Three things that hold for every plan:

- *compute*: a step computes that long;
- *work*: all gradients of at most `max_merge` steps travel once, over all links together;
- *deadlines*: take all gradients that are ready at a moment r of backward or later and are needed,
  at the latest, at a moment u of the forward that ends their delay. They travel between the two,
  and as long as that takes more than compute does, compute stands still. For `max_delay=0` this is
  the bound of synchronous training: what is ready last and used first is exposed in any order.

Messages may be cut and fused at will here, so a bound holds for every way to make buckets; each set
of gradients pays for one start-up only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from deft_horovod.base.parameter import Parameter
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.solver.problem import Limits

# Moments of forward that are looked at; fewer only make the bound smaller.
_MOMENTS: Final = 64


def bound_us(parameters: Sequence[Parameter], profile: Profile, limits: Limits) -> float:
    """Of a step. Without a measured link only compute counts."""
    sizes = np.array([parameter.bytes for parameter in parameters], dtype=np.float64)
    carried = sizes > 0.0
    if not profile.links or not carried.any():
        return profile.compute_us
    alpha_us, beta_us = _together(profile, limits)
    work_us = (alpha_us + beta_us * float(sizes.sum())) / limits.max_merge
    ready_us = np.minimum(np.array(profile.ready_us), profile.backward_us)
    # Since the end of backward; what no gate can wait for is needed there.
    need_us = np.array(
        [
            0.0 if use is None else profile.optimizer_us + min(use, profile.forward_us)
            for use in profile.first_use_us
        ]
    )
    late_us = limits.max_delay * profile.compute_us
    window_us = profile.backward_us - ready_us + need_us + late_us
    alone_us = alpha_us + beta_us * sizes - window_us
    overlaps = math.ceil((limits.max_delay + 1) / limits.max_merge)
    alone = max(0.0, float(alone_us[carried].max())) / (limits.max_merge * overlaps)
    exposed = max(alone, _exposed_together(sizes, ready_us, need_us, profile, limits))
    return max(work_us, profile.compute_us + exposed)


def _together(profile: Profile, limits: Limits) -> tuple[float, float]:
    """What a message takes if all links carry a part of it, each as fast as it was ever
    measured, in the format that is allowed and suits it."""
    costs: list[LinkCost] = []
    for link in profile.links:
        encoded = [one.cost for one in link.formats if one.format in limits.formats]
        measured = [link.cost, link.busy_cost or link.cost, *encoded]
        costs.append(
            LinkCost(
                alpha_us=min(cost.alpha_us for cost in measured),
                beta_us_per_byte=min(cost.beta_us_per_byte for cost in measured),
            )
        )
    alpha_us = min(cost.alpha_us for cost in costs)
    if any(cost.beta_us_per_byte == 0.0 for cost in costs):
        return alpha_us, 0.0
    return alpha_us, 1.0 / sum(1.0 / cost.beta_us_per_byte for cost in costs)


def _exposed_together(
    sizes: np.ndarray, ready_us: np.ndarray, need_us: np.ndarray, profile: Profile, limits: Limits
) -> float:
    """By all gradients between two moments, for the worst pair.

    Merging spreads a set over `max_merge` steps, each of which has its own time between the two
    moments; with delay these times overlap, and so compute that stands still counts for several.
    """
    alpha_us, beta_us = _together(profile, limits)
    moments = np.unique(need_us)
    moments = moments[np.linspace(0, len(moments) - 1, min(len(moments), _MOMENTS)).astype(int)]
    order = np.argsort(-ready_us, kind="stable")
    counts = sizes[order, None] * (need_us[order, None] <= moments)
    bytes_from = np.cumsum(counts, axis=0)  # [parameter, moment]: ready then or later, needed by it
    late_us = limits.max_delay * profile.compute_us
    window_us = profile.backward_us - ready_us[order, None] + moments + late_us
    spread = limits.max_merge
    exposed_us = alpha_us + beta_us * bytes_from - spread * window_us
    exposed_us[bytes_from == 0.0] = 0.0
    return max(0.0, float(exposed_us.max())) / (spread * (limits.max_delay + 1))
