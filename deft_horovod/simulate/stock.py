"""Stock Horovod: gradients are fused in the order in which they are ready, cycle by cycle.

Horovod's background thread looks for ready gradients once in each cycle, fuses those of one kind up
to a threshold and works on one message after the other. While it does, no cycle begins, so what
becomes ready meanwhile travels with the next message. The optimizer waits for everything before it
updates. These are the rules of `RunLoopOnce` and `Controller::FuseResponses` of Horovod 0.28.1, with
its defaults; links that work on messages beside that thread (NCCL) begin cycles more often and so
fuse less than is simulated here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.parameter import Parameter
from deft_horovod.profile import LinkCost, Profile

CYCLE_US: Final = 1000.0
FUSION_BYTES: Final = 128 * 1024**2


@dataclass(frozen=True)
class StockMessage:
    """Gradients that travel as one. Times are since backward began."""

    parameters: tuple[int, ...]
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
    messages: list[StockMessage] = []
    if profile.link is not None:
        waiting = sorted(profile.ready_order, key=lambda index: profile.ready_us[index])
        next_us = 0.0
        while waiting:
            begins_us = _cycle_us(next_us, _ready_us(profile, waiting[0]), cycle_us)
            ready = [i for i in waiting if _ready_us(profile, i) <= begins_us]
            waiting = waiting[len(ready) :]
            fused = _fused(parameters, ready, fusion_bytes)
            messages += _sent(parameters, list(fused), begins_us, profile.link)
            next_us = max(begins_us + cycle_us, messages[-1].arrives_us)
    arrived_us = max([profile.backward_us, *(message.arrives_us for message in messages)])
    return StockStep(
        step_us=profile.compute_us + arrived_us - profile.backward_us,
        compute_us=profile.compute_us,
        messages=tuple(messages),
    )


def _cycle_us(next_us: float, ready_us: float, cycle_us: float) -> float:
    """When the first cycle begins that finds something ready; idle ones follow each other."""
    idle = max(0.0, -(-(ready_us - next_us) // cycle_us))
    return max(next_us + idle * cycle_us, ready_us if idle else next_us)  # whatever rounding does


def _fused(
    parameters: Sequence[Parameter], ready: Sequence[int], fusion_bytes: int
) -> Iterator[tuple[int, ...]]:
    """Neighbours of one kind, over those of other kinds, until one does not fit."""
    left = list(ready)
    while left:
        first = parameters[left[0]]
        members, skipped = [left[0]], []
        total = first.bytes
        for place, index in enumerate(left[1:], 1):
            one = parameters[index]
            if (one.wire, one.device) != (first.wire, first.device):
                skipped.append(index)
            elif total + one.bytes <= fusion_bytes:
                members.append(index)
                total += one.bytes
            else:
                skipped += left[place:]
                break
        yield tuple(members)
        left = skipped


def _sent(
    parameters: Sequence[Parameter],
    groups: Sequence[tuple[int, ...]],
    begins_us: float,
    cost: LinkCost,
) -> Iterator[StockMessage]:
    """One after the other."""
    for members in groups:
        size = sum(parameters[index].bytes for index in members)
        arrives_us = begins_us + cost.time_us(size)
        yield StockMessage(members, size, begins_us, arrives_us)
        begins_us = arrives_us


def _ready_us(profile: Profile, index: int) -> float:
    return min(profile.ready_us[index], profile.backward_us)
