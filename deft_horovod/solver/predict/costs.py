"""Costs: what the messages and stages of a plan take, by a profile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from deft_horovod.base.wire_format import EXACT, WireFormat
from deft_horovod.errors import PlanError, explain
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import bucket_bytes
from deft_horovod.profile import LinkCost, Profile

# Bytes that an operation moves, in those that an all-reduce of the same buffer does: on a ring an
# all-reduce is a reduce-scatter and an all-gather. For those that were not measured by themselves.
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
    """Of each link of the plan, with as much in flight as its credit allows. With others busy
    beside it where that was measured."""
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
        costs.append((beside or found.cost).with_in_flight(_in_flight(plan, number)))
    return tuple(costs)


def _in_flight(plan: Plan, number: int) -> float:
    """How many messages of a link may be in flight together, on the average."""
    link = plan.links[number]
    messages = link.credit_messages or math.inf
    if not link.credit_bytes:
        return messages
    sizes = bucket_bytes(plan)
    sent = [sizes[plan.generations[t.generation].bucket] for t in plan.tasks if t.link == number]
    return min(messages, link.credit_bytes * len(sent) / max(1, sum(sent)) if sent else math.inf)


def task_times_us(plan: Plan, profile: Profile) -> tuple[float, ...]:
    """How long each message keeps its link busy."""
    costs = link_costs(plan, profile)
    halves = {
        (number, op): cost.with_in_flight(costs[number].in_flight)
        for number, link in enumerate(plan.links)
        for (name, op), cost in _halves(profile).items()
        if name == link.name
    }
    sizes = bucket_bytes(plan)
    encoded = _encoded(plan, profile, costs)
    times = []
    for task in plan.tasks:
        bucket = plan.generations[task.generation].bucket
        size, wire_format = sizes[bucket], plan.buckets[bucket].format
        if wire_format != EXACT:
            times.append(encoded[task.link, wire_format].time_us(size))
            continue
        measured = halves.get((task.link, task.op))
        times.append(
            costs[task.link].time_us(size * _VOLUME[task.op])
            if measured is None
            else measured.time_us(size)
        )
    return tuple(times)


def busy_us(plan: Plan, task_us: Sequence[float]) -> tuple[float, ...]:
    """How long each link is busy with the messages of a period: none can take less."""
    found = [0.0] * len(plan.links)
    for task, time_us in zip(plan.tasks, task_us, strict=True):
        found[task.link] += time_us
    return tuple(found)


def _halves(profile: Profile) -> dict[tuple[str, str], LinkCost]:
    """What the two halves of an all-reduce were measured to cost, by (link, operation)."""
    found: dict[tuple[str, str], LinkCost] = {}
    for link in profile.links:
        for op, cost in (("reduce_scatter", link.scatter_cost), ("all_gather", link.gather_cost)):
            if cost is not None:
                found[link.name, op] = cost
    return found


def _encoded(
    plan: Plan, profile: Profile, costs: Sequence[LinkCost]
) -> dict[tuple[int, WireFormat], LinkCost]:
    """What messages cost in the formats that the plan uses, by (link, format)."""
    measured = {link.name: link for link in profile.links}
    buckets = [plan.buckets[generation.bucket] for generation in plan.generations]
    used = {(task.link, buckets[task.generation].format) for task in plan.tasks}
    found: dict[tuple[int, WireFormat], LinkCost] = {}
    for number, wire_format in sorted(used):
        if wire_format == EXACT:
            continue
        name = plan.links[number].name
        cost = measured[name].cost_in(wire_format)
        if cost is None:
            raise _unmeasured(name, profile, wire_format)
        found[number, wire_format] = cost.with_in_flight(costs[number].in_flight)
    return found


def _unmeasured(link: str, profile: Profile, wire_format: WireFormat = EXACT) -> PlanError:
    known = ", ".join(
        f"'{one.name}' ({', '.join([EXACT, *(cost.format for cost in one.formats)])})"
        for one in profile.links
    )
    return PlanError(
        explain(
            f"the profile does not say what link '{link}' costs in {wire_format}",
            observed=f"measured links: {known or 'none'}",
            expected="every link and format that the plan uses",
            action="profile with this link and accuracy, or make the plan anew",
        )
    )
