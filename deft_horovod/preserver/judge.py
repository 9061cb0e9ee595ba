"""A policy's plan, within the accuracy budget: as late as the options allow, less late, or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from deft_horovod.plan import Plan
from deft_horovod.plan.staleness import staleness
from deft_horovod.policies.base import Policy, Request
from deft_horovod.policies.least_stale import LeastStale
from deft_horovod.policies.limits import limits_of, narrowed, shares
from deft_horovod.preserver.cost import Gradients, affordable_share, cost, lateness
from deft_horovod.preserver.judgement import Judgement

_LEAST_SHARE: Final = 0.02  # of the bytes; to delay less is not worth it
_LONGEST_SUM: Final = 2  # of a plan that is less late than asked for


@dataclass(frozen=True)
class _Terms:
    turn: float
    correction: str
    budget: float

    def price(self, plan: Plan) -> float:
        return cost(lateness(staleness(plan)), self.turn, self.correction)

    def share(self, delay: int, merged: int) -> float:
        return affordable_share(self.budget, self.turn, self.correction, delay, merged)


def preserved(
    policy: Policy,
    request: Request,
    gradients: Gradients | None,
    correction: str,
    budget: float,
) -> tuple[Plan, Judgement]:
    """`gradients`: as they were of late; None: not known, so nothing may be late."""
    asked = policy.plan(request)
    if gradients is None:
        late = lateness(staleness(asked)).any
        plan = _synchronous(policy, request) if late else asked
        return plan, Judgement(budget=budget, verdict="refused" if late else "kept")
    terms = _Terms(gradients.turn, correction, budget)
    price = terms.price(asked)
    said = Judgement(
        budget=budget,
        turn=terms.turn,
        steps=gradients.steps,
        asked_cost=price,
        cost=price,
        verdict="kept",
    )
    if price <= budget:
        return asked, said
    less = [
        plan for plan in _less_late(policy, request, terms) if 0.0 < terms.price(plan) <= budget
    ]
    if not less:
        plan = _synchronous(policy, request)
        return plan, said.model_copy(update={"cost": 0.0, "verdict": "refused"})
    plan = min(less, key=lambda one: (_step_us(one), terms.price(one)))
    return plan, said.model_copy(update={"cost": terms.price(plan), "verdict": "limited"})


def _less_late(policy: Policy, request: Request, terms: _Terms) -> Iterator[Plan]:
    """A step late at most, and the same with short sums, each for as many bytes as is affordable:
    sums save link time, but fewer bytes may be so late."""
    if not shares(policy.name):
        return
    allowed = limits_of(policy.name, request)
    delay = min(1, allowed.max_delay)
    for merged in range(1, min(_LONGEST_SUM, allowed.max_merge) + 1):
        share = min(terms.share(delay, merged), allowed.late_share)
        if (delay or merged > 1) and share >= _LEAST_SHARE:
            less = replace(allowed, max_delay=delay, max_merge=merged, late_share=share)
            yield policy.plan(replace(request, limits=less))


def _step_us(plan: Plan) -> float:
    return plan.prediction.step_us if plan.prediction is not None else 0.0


def _synchronous(policy: Policy, request: Request) -> Plan:
    exact = policy if shares(policy.name) else LeastStale()
    now = narrowed(limits_of(exact.name, request), late=False, sums=False)
    return exact.plan(replace(request, limits=now))
