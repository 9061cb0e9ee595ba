"""Costs: what the messages and stages of a plan take, by a profile."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from deft_horovod.errors import PlanError, explain
from deft_horovod.parameter import WIRE_ITEM_BYTES
from deft_horovod.plan import Plan
from deft_horovod.profile import LinkCost, Profile

# Bytes that an operation moves, in those that an all-reduce of the same buffer does: on a ring an
# all-reduce is a reduce-scatter and an all-gather.
_VOLUME: Final[Mapping[str, float]] = MappingProxyType(
    {"all_reduce": 1.0, "reduce_scatter": 0.5, "all_gather": 0.5, "broadcast": 0.5}
)


def check_fit(plan: Plan, profile: Profile) -> None:
    """A plan and a profile of different models say nothing about each other."""
    if plan.slots and len(plan.slots) != len(profile.ready_order):
        raise PlanError(
            explain(
                "the plan and the profile are of different models",
                observed=f"a plan of {len(plan.slots)} parameters",
                expected=f"{len(profile.ready_order)}, as in the profile",
                action="use the profile that the plan was made from",
            )
        )


def link_costs(plan: Plan, profile: Profile) -> tuple[LinkCost, ...]:
    """Of each link of the plan. With others busy beside it where that was measured."""
    used = {task.link for task in plan.tasks}
    measured = {link.name: link for link in profile.links}
    costs = []
    for number, link in enumerate(plan.links):
        if link.name not in measured:
            if number in used:
                raise _unmeasured(link.name, profile)
            costs.append(LinkCost(alpha_us=0.0, beta_us_per_byte=0.0))
            continue
        found = measured[link.name]
        beside = found.busy_cost if len(used) > 1 else None
        costs.append(found.cost if beside is None else beside)
    return tuple(costs)


def bucket_bytes(plan: Plan) -> tuple[int, ...]:
    return tuple(
        (bucket.end - bucket.begin) * WIRE_ITEM_BYTES[plan.arenas[bucket.arena].wire]
        for bucket in plan.buckets
    )


def task_times_us(plan: Plan, profile: Profile) -> tuple[float, ...]:
    """How long each message keeps its link busy."""
    costs = link_costs(plan, profile)
    sizes = bucket_bytes(plan)
    return tuple(
        costs[task.link].alpha_us
        + costs[task.link].beta_us_per_byte
        * sizes[plan.generations[task.generation].bucket]
        * _VOLUME[task.op]
        for task in plan.tasks
    )


def _unmeasured(name: str, profile: Profile) -> PlanError:
    known = ", ".join(f"'{link.name}'" for link in profile.links)
    return PlanError(
        explain(
            f"the profile does not say what link '{name}' costs",
            observed=f"measured links: {known or 'none'}",
            expected="every link that the plan uses",
            action="profile with this link, or make the plan anew",
        )
    )
