"""bytescheduler: partitions of gradients leave by priority, as far as there is credit.

After ByteScheduler (Peng et al., "A Generic Communication Scheduler for Distributed DNN Training
Acceleration", SOSP 2019): a gradient larger than the partition is cut; what is ready waits in a
queue whose head is what forward needs first; it leaves while credit is left, and its bytes come
back when it has arrived; the update of a layer waits just before its own forward.

Three things differ. The queue runs once, on the measured profile, since the order of messages has
to be the same on all ranks. The update is that of the user's own optimizer, whichever it is. And
partition and credit are searched together on the simulated timeline instead of by Bayesian
optimisation in the running job; where there are many gradients, first one and then the other. With
`tune` off they are `partition_bytes` and `credit_bytes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.policies.pieces import by_priority, horovod_link, plan_of_pieces, wire_bytes
from deft_horovod.policies.published.tuning import fastest_place, sizes_bytes
from deft_horovod.profile import LinkProfile

# Partitions in flight. The published defaults, 1 M parameters and a credit of 4 M, are four.
_IN_FLIGHT: Final = (4, 1, 2, 8)
_MOST_TOGETHER: Final = 320  # gradients for which both are searched together


@dataclass(frozen=True)
class PieceSizes:
    partition_bytes: int
    credit_bytes: int


class ByteScheduler(MeasuredPolicy):
    name = "bytescheduler"
    summary = "partitions leave by priority as far as there is credit (ByteScheduler)"

    def schedule(self, request: Request, link: LinkProfile) -> Plan:
        return tuned(request, link)[1]


def tuned(request: Request, link: LinkProfile) -> tuple[PieceSizes, Plan]:
    """The partition and the credit with the shortest predicted step, and the plan with them."""
    config = request.config
    if not config.tune:
        given = PieceSizes(config.partition_bytes, config.credit_bytes)
        return given, _plan(request, link, given)
    gradients_bytes = wire_bytes(request)
    sizes = sizes_bytes(sum(gradients_bytes))
    if len(request.parameters) <= _MOST_TOGETHER:
        return _best(
            request, link, [PieceSizes(s, count * s) for count in _IN_FLIGHT for s in sizes]
        )
    first = _IN_FLIGHT[0]
    best, _ = _best(
        request,
        link,
        [PieceSizes(size, first * size) for size in _that_differ(sizes, gradients_bytes, first)],
    )
    size = best.partition_bytes
    return _best(request, link, [PieceSizes(size, count * size) for count in _IN_FLIGHT])


def _that_differ(sizes: Sequence[int], gradients_bytes: Sequence[int], in_flight: int) -> list[int]:
    """Of partitions that cut nothing, with credit for everything, the first one says it all."""
    largest, total = max(gradients_bytes), sum(gradients_bytes)
    found: dict[tuple[int, int], int] = {}
    for size in sizes:
        found.setdefault((min(size, largest), min(in_flight * size, total)), size)
    return list(found.values())


def _best(
    request: Request, link: LinkProfile, settings: Sequence[PieceSizes]
) -> tuple[PieceSizes, Plan]:
    plans = (_plan(request, link, setting) for setting in settings)
    place, plan = fastest_place(plans, request.profile)
    return settings[place], plan


def _plan(request: Request, link: LinkProfile, setting: PieceSizes) -> Plan:
    limited = horovod_link(credit_bytes=setting.credit_bytes)
    pieces = by_priority(request, link, setting.partition_bytes, limited)
    return plan_of_pieces(ByteScheduler.name, request, pieces, limited)
