"""Outlook: what a policy would do on a cluster, beside stock Horovod and what none could beat."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from deft_horovod.plan import Plan
from deft_horovod.plan.contents import bucket_bytes
from deft_horovod.plan.formats import message_bytes
from deft_horovod.plan.staleness import mean_staleness, staleness, updates_per_step
from deft_horovod.policies import Policy, Request
from deft_horovod.policies.limits import limits_of
from deft_horovod.policies.stock import Stock
from deft_horovod.profile import Profile
from deft_horovod.simulate.cluster import Cluster, on_cluster
from deft_horovod.simulate.stock import (
    StockStep,
    is_left_to_horovod,
    simulate_handed_over,
    simulate_stock,
)
from deft_horovod.solver.predict.bounds import bound_us
from deft_horovod.solver.predict.timeline import Timeline, simulate
from deft_horovod.solver.problem import Limits


@dataclass(frozen=True)
class Outlook:
    """One policy on one cluster."""

    policy: str
    ranks: int
    link: str
    compute_us: float
    step_us: float
    floor_us: float  # no plan that is as late as this policy may be takes less
    stock_us: float  # a step of stock Horovod on the same cluster
    staleness_steps: float = 0.0  # from a gradient to its update, the mean over the bytes
    updates_per_step: float = 1.0
    sent_share: float = 1.0  # bytes of the messages, of those of the gradients

    @property
    def exposed_us(self) -> float:
        return max(0.0, self.step_us - self.compute_us)

    @property
    def speedup(self) -> float:
        """Over stock Horovod."""
        return self.stock_us / self.step_us if self.step_us > 0.0 else 1.0

    @property
    def efficiency(self) -> float:
        """Of the time, the share in which ranks compute."""
        return self.compute_us / self.step_us if self.step_us > 0.0 else 1.0

    @property
    def highest_efficiency(self) -> float:
        """By the floor."""
        return self.compute_us / self.floor_us if self.floor_us > 0.0 else 1.0

    def to_data(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "exposed_us": self.exposed_us,
            "speedup": self.speedup,
            "efficiency": self.efficiency,
            "highest_efficiency": self.highest_efficiency,
        }


class Scenario:
    """A job on a cluster. What all policies share is worked out once."""

    def __init__(self, request: Request, cluster: Cluster) -> None:
        """`request`: with the profile as it was measured."""
        self.cluster = cluster
        self._request = replace(request, profile=on_cluster(request.profile, cluster))
        self._stock = simulate_stock(request.parameters, self._request.profile)
        self._floors_us: dict[Limits, float] = {}

    def outlook(self, policy: Policy) -> Outlook:
        found = Outlook(
            policy=policy.name,
            ranks=self.cluster.ranks,
            link=self.cluster.link,
            compute_us=self._request.profile.compute_us,
            step_us=self._stock.step_us,
            floor_us=self._floor_us(limits_of(policy.name, self._request)),
            stock_us=self._stock.step_us,
        )
        if policy.name == Stock.name:
            return found
        plan = policy.plan(self._request)
        said = plan.prediction  # of this profile, so that nothing is simulated twice
        return replace(
            found,
            step_us=said.step_us if said is not None else step_us(plan, self._request.profile),
            staleness_steps=mean_staleness(staleness(plan)),
            updates_per_step=updates_per_step(plan),
            sent_share=sum(message_bytes(plan)) / max(1, sum(bucket_bytes(plan))),
        )

    def _floor_us(self, allowed: Limits) -> float:
        if allowed not in self._floors_us:
            request = self._request
            self._floors_us[allowed] = bound_us(request.parameters, request.profile, allowed)
        return self._floors_us[allowed]


def step_us(plan: Plan, profile: Profile) -> float:
    """What a step takes under a plan, whether Horovod or the plan orders and fuses messages."""
    return play(plan, profile).step_us


def play(plan: Plan, profile: Profile) -> StockStep | Timeline:
    """What happens in a step under a plan; the first where Horovod orders and fuses messages."""
    if is_left_to_horovod(plan):
        return simulate_handed_over(plan, profile)
    return simulate(plan, profile)
