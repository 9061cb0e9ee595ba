"""Which messages to send over a link to find out what it costs, within a given time."""

from __future__ import annotations

import itertools
from typing import Final

from deft_horovod.base.record import Count, Index, Record
from deft_horovod.profile.profile import LinkCost

SMALLEST_BYTES: Final = 16  # a message that is nothing but the header of a slot
SIZES: Final = 10
_FEWEST_SIZES: Final = 8
ALIGNMENT_BYTES: Final = 16
# Rounds, and messages of each size in a round: enough for a median if possible, else at least one.
_EFFORTS: Final = (((11, 2), (7, 2), (3, 2)), ((2, 2), (1, 2), (1, 1)))
# Smaller ones are only taken for the largest message when no larger one can be afforded.
_FLOORS_BYTES: Final = (
    1 << 22,
    1 << 20,
    1 << 18,
    1 << 16,
    1 << 14,
    SMALLEST_BYTES << _FEWEST_SIZES,
)


class ProbePlan(Record):
    """Rounds over the sizes; in each, so many messages of each size, one after the other."""

    sizes_bytes: tuple[Count, ...]
    rounds: Index
    messages: Index
    small_bytes: Count = 0  # up to this size a message is mostly start-up

    def round_us(self, cost: LinkCost) -> float:
        """What one round takes."""
        return self.messages * sum(cost.time_us(size) for size in self.sizes_bytes)


def sizes_up_to(largest_bytes: int, count: int = SIZES) -> tuple[int, ...]:
    """Geometric, from the header to about the largest; different ones, in multiples of 16."""
    largest_bytes = max(largest_bytes, _FLOORS_BYTES[-1])
    ratio = (largest_bytes / SMALLEST_BYTES) ** (1 / (count - 1))
    exact = (SMALLEST_BYTES * ratio**i for i in range(count))
    return tuple(sorted({round(size / ALIGNMENT_BYTES) * ALIGNMENT_BYTES for size in exact}))


def probe_plan(rough: LinkCost, largest_bytes: int, budget_us: float) -> ProbePlan:
    """The most that fits into the time: large messages first, then repetitions.

    A link that is too slow for the least (each of 8 sizes once) gets it all the same.
    """
    for efforts, floor_bytes in itertools.product(_EFFORTS, _FLOORS_BYTES):
        for rounds, messages in efforts:
            reach_bytes = largest_bytes
            while reach_bytes >= min(floor_bytes, largest_bytes):
                sizes_bytes = sizes_up_to(reach_bytes)
                plan = ProbePlan(
                    sizes_bytes=sizes_bytes,
                    rounds=rounds,
                    messages=messages,
                    small_bytes=int(rough.alpha_us / max(rough.beta_us_per_byte, 1e-6)),
                )
                if (rounds + 1) * plan.round_us(rough) <= budget_us:  # one more, to warm up
                    return plan
                reach_bytes //= 2
    least = sizes_up_to(_FLOORS_BYTES[-1], _FEWEST_SIZES)
    return ProbePlan(sizes_bytes=least, rounds=1, messages=1)
