"""Stock Horovod: gradients are fused in the order in which they are ready, cycle by cycle.

Horovod's background thread looks for ready tensors once in each cycle, fuses those of one kind up
to a threshold and works on one message after the other. While it does, no cycle begins, so what
becomes ready meanwhile travels with the next message. The optimizer waits for everything before
it updates. These are the rules of `RunLoopOnce` and `Controller::FuseResponses` of Horovod 0.28.1,
with its defaults; links that work on messages beside that thread (NCCL) begin cycles more often and
so fuse less than is simulated here.

Our own plans are under the same rules where they leave order and fusion to Horovod: their buckets
take the place of gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.base.parameter import Parameter
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import bucket_bytes, contents
from deft_horovod.profile import LinkCost, Profile

CYCLE_US: Final = 1000.0
FUSION_BYTES: Final = 128 * 1024**2


@dataclass(frozen=True)
class HandedOver:
    """A tensor that Horovod is given to reduce."""

    ready_us: float  # since backward began
    bytes: int
    kind: tuple[str, str]  # what it shares with those that it may be fused with


@dataclass(frozen=True)
class StockMessage:
    """Tensors that travel as one. Times are since backward began."""

    members: tuple[int, ...]
    bytes: int
    starts_us: float
    arrives_us: float


@dataclass(frozen=True)
class StockStep:
    """One step; all are alike, as nothing is in flight between them."""

    step_us: float
    compute_us: float
    messages: tuple[StockMessage, ...]  # in the order in which they travel

    @property
    def exposed_us(self) -> float:
        return self.step_us - self.compute_us


def simulate_stock(
    parameters: Sequence[Parameter],
    profile: Profile,
    *,
    cycle_us: float = CYCLE_US,
    fusion_bytes: int = FUSION_BYTES,
) -> StockStep:
    """What a step takes on the first link of the profile; without one nothing travels."""
    tensors = [
        HandedOver(profile.ready_in_backward_us(index), one.bytes, (one.wire, one.device))
        for index, one in enumerate(parameters)
    ]
    return _step(tensors, profile, cycle_us, fusion_bytes)


def is_left_to_horovod(plan: Plan) -> bool:
    """Whether every bucket is handed over when it is complete and waited for at the boundary."""
    links = {task.link for task in plan.tasks}
    return (
        plan.period == 1
        and links == {0}
        and plan.links[0].fusion
        and not plan.links[0].plan_order
        and all(task.op == "all_reduce" and task.step == 0 for task in plan.tasks)
        and not any(
            generation.gated or generation.delay or generation.last_step
            for generation in plan.generations
        )
    )


def simulate_handed_over(plan: Plan, profile: Profile) -> StockStep:
    """What a step takes under a plan of that kind."""
    tensors = [
        HandedOver(
            ready_us=max(profile.ready_in_backward_us(index) for index in members),
            bytes=size,
            kind=(plan.arenas[bucket.arena].wire, plan.arenas[bucket.arena].device),
        )
        for bucket, size, members in zip(
            plan.buckets, bucket_bytes(plan), contents(plan.slots, plan.buckets), strict=True
        )
    ]
    return _step(tensors, profile, CYCLE_US, FUSION_BYTES)


def _step(
    tensors: Sequence[HandedOver], profile: Profile, cycle_us: float, fusion_bytes: int
) -> StockStep:
    messages: tuple[StockMessage, ...] = ()
    if profile.link is not None:
        # The cycle itself is simulated, and no message shares it with another.
        cost = profile.link.model_copy(update={"cycle_us": 0.0})
        messages = tuple(_travel(tensors, cost, cycle_us, fusion_bytes))
    arrived_us = max([profile.backward_us, *(message.arrives_us for message in messages)])
    return StockStep(
        step_us=profile.compute_us + arrived_us - profile.backward_us,
        compute_us=profile.compute_us,
        messages=messages,
    )


def _travel(
    tensors: Sequence[HandedOver], cost: LinkCost, cycle_us: float, fusion_bytes: int
) -> Iterator[StockMessage]:
    """Cycle by cycle; the first one begins with backward."""
    waiting = sorted(range(len(tensors)), key=lambda index: tensors[index].ready_us)
    next_us = 0.0
    while waiting:
        starts_us = _cycle_us(next_us, tensors[waiting[0]].ready_us, cycle_us)
        next_us = starts_us + cycle_us
        count = sum(tensors[index].ready_us <= starts_us for index in waiting)
        for members in _fused(tensors, waiting[:count], fusion_bytes):
            size = sum(tensors[index].bytes for index in members)
            arrives_us = starts_us + cost.time_us(size)
            yield StockMessage(members, size, starts_us, arrives_us)
            starts_us = arrives_us
        next_us = max(next_us, starts_us)
        waiting = waiting[count:]


def _cycle_us(next_us: float, ready_us: float, cycle_us: float) -> float:
    """When the first cycle begins that finds something ready; idle ones follow each other."""
    if ready_us <= next_us:
        return next_us
    idle = -(-(ready_us - next_us) // cycle_us)
    return max(next_us + idle * cycle_us, ready_us)  # whatever rounding does


def _fused(
    tensors: Sequence[HandedOver], ready: Sequence[int], fusion_bytes: int
) -> Iterator[tuple[int, ...]]:
    """Neighbours of one kind, over those of other kinds, until one does not fit."""
    left = list(ready)
    while left:
        first = tensors[left[0]]
        members, skipped, total = [left[0]], [], first.bytes
        for place, index in enumerate(left[1:], 1):
            one = tensors[index]
            if one.kind != first.kind:
                skipped.append(index)
            elif total + one.bytes <= fusion_bytes:
                members.append(index)
                total += one.bytes
            else:
                skipped += left[place:]
                break
        yield tuple(members)
        left = skipped
