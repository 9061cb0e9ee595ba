"""Pace: how long a step takes on so many ranks somewhere, with our plan and with stock Horovod.

The simulator says it (`deft_horovod.simulate`). Ours is what `auto` would keep: the plan of
`least_stale` for the job's accuracy, or stock Horovod where that gains less than `min_gain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from deft_horovod import policies
from deft_horovod.base.parameter import WIRES, Parameter, stays_exact
from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError
from deft_horovod.policies import Request
from deft_horovod.profile import Profile
from deft_horovod.simulate.cluster import LATENCY_US, Cluster, on_cluster
from deft_horovod.simulate.outlook import step_us
from deft_horovod.simulate.stock import simulate_stock

_POLICY: Final = "least_stale"
_STOCK: Final = "stock"


@dataclass(frozen=True)
class Site:
    """Where a job runs: so many ranks on machines of a kind."""

    ranks: int
    speed: float = 1.0  # times that of the machine of the profile
    rate_bits_per_s: float | None = None  # None: links are those that were measured
    latency_us: float = LATENCY_US


@dataclass(frozen=True)
class Pace:
    """Of one step."""

    compute_us: float
    stock_us: float
    ours_us: float
    policy: str


class Paces:
    """Of one job. What was asked for once is remembered."""

    def __init__(self, profile: Profile, accuracy: str) -> None:
        self._profile, self._accuracy = profile, accuracy
        self._known: dict[Site, Pace] = {}

    def at(self, site: Site) -> Pace:
        if site not in self._known:
            self._known[site] = self._simulated(site)
        return self._known[site]

    def _simulated(self, site: Site) -> Pace:
        profile = _sped_up(self._profile, site.speed)
        compute_us = profile.compute_us
        if site.ranks == 1:  # sends nothing
            return Pace(compute_us, compute_us, compute_us, _STOCK)
        config = Config.model_validate({"accuracy": self._accuracy})
        there = on_cluster(profile, Cluster(site.ranks, site.rate_bits_per_s, site.latency_us))
        request = Request(_parameters(profile), there, config)
        stock_us = simulate_stock(request.parameters, there).step_us
        enough_us = stock_us * (1.0 - config.min_gain)
        if compute_us > enough_us:  # no plan gains that much
            return Pace(compute_us, stock_us, stock_us, _STOCK)
        ours_us = step_us(policies.get(_POLICY).plan(request), there)
        if ours_us > enough_us:
            return Pace(compute_us, stock_us, stock_us, _STOCK)
        return Pace(compute_us, stock_us, ours_us, _POLICY)


def _parameters(profile: Profile) -> tuple[Parameter, ...]:
    unknown = sorted({one.dtype for one in profile.tensors} - {*WIRES})
    if unknown:
        raise NotSupportedError(f"gradients of {', '.join(unknown)} cannot travel")
    return tuple(
        Parameter(
            name=one.name,
            elements=prod(one.shape),
            dtype=one.dtype,
            wire=WIRES[one.dtype][0],
            device="cpu",
            exact=stays_exact(one.name, one.shape),
        )
        for one in profile.tensors
    )


def _sped_up(profile: Profile, speed: float) -> Profile:
    """The same step on a machine that computes so many times as fast."""
    if speed == 1.0:
        return profile
    return profile.model_copy(
        update={
            "ready_us": tuple(time_us / speed for time_us in profile.ready_us),
            "first_use_us": tuple(
                None if time_us is None else time_us / speed for time_us in profile.first_use_us
            ),
            "forward_us": profile.forward_us / speed,
            "backward_us": profile.backward_us / speed,
            "optimizer_us": profile.optimizer_us / speed,
        }
    )
