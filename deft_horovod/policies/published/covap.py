"""covap: a step sends only some of the gradients; what it keeps travels later, as a sum. Lossy.

After COVAP (arXiv 2311.04499): gradient compression whose filter is coarse, since whole tensors are
sent or kept, at a ratio that follows from how communication and computation compare, with tensors
sharded and error fed back. What was readable of it is the abstract, so the rules are ours:

- the interval I is the coverage rate, rounded up, at most `max_merge`;
- every block of gradients travels in each I-th step, as the sum of what was kept since (error
  feedback with nothing forgotten); blocks are dealt out to the I steps by size, the largest first,
  so that each step carries about as much;
- the update waits for what travels. Parameters whose gradients are kept are not updated, which is
  what makes it lossy: the trajectory is not that of synchronous training.

The paper shards tensors, so that parts of one may travel in different steps. Here a parameter is
updated at one moment, by the user's own optimizer, so its parts travel in the same step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request
from deft_horovod.policies.limits import limits_of
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.profile import LinkProfile
from deft_horovod.solver.assemble import Departure, Timing, assemble
from deft_horovod.solver.messages.blocks import Blocking, block_up
from deft_horovod.solver.problem import Choice


class Covap(MeasuredPolicy):
    name = "covap"
    summary = "a step sends some of the gradients and keeps the rest for later (COVAP; lossy)"
    correction = "none"  # its own is that sums lose nothing
    gates = False

    def schedule(self, request: Request, link: LinkProfile) -> Plan:
        # Nothing waits for a window here, so nothing is gained by finer messages.
        blocking = block_up(request.parameters, request.profile, window_share=1.0)
        times_us = [
            sum(link.cost.time_us(blocking.bucket_bytes(bucket)) for bucket in block.buckets)
            for block in blocking.blocks
        ]
        most = limits_of(self.name, request).max_merge
        interval = interval_of(sum(times_us), request.profile.compute_us, most)
        end_steps = dealt(times_us, interval)
        return assemble(
            self.name,
            blocking,
            interval,
            [
                Timing.of(Choice(merged=interval, end_step=end_step), interval)
                for end_step in end_steps
            ],
            _departures(blocking, end_steps, interval),
        )


def interval_of(communication_us: float, compute_us: float, most: int) -> int:
    """Steps from one message of a block to its next."""
    if communication_us <= compute_us:
        return 1
    if communication_us >= most * compute_us:  # also where nothing is computed
        return most
    return math.ceil(communication_us / compute_us)


def dealt(times_us: Sequence[float], interval: int) -> list[int]:
    """In which step of the interval each block travels."""
    loads_us = [0.0] * interval
    end_steps = [0] * len(times_us)
    for block in sorted(range(len(times_us)), key=lambda index: (-times_us[index], index)):
        end_step = min(range(interval), key=lambda step: (loads_us[step], step))
        end_steps[block] = end_step
        loads_us[end_step] += times_us[block]
    return end_steps


def _departures(blocking: Blocking, end_steps: Sequence[int], interval: int) -> list[Departure]:
    """Step by step, in the order of readiness, which is that of the blocks."""
    return [
        Departure(block=number, bucket=place, step=step, link=0)
        for step in range(interval)
        for number, block in enumerate(blocking.blocks)
        if end_steps[number] == step
        for place in range(len(block.buckets))
    ]
