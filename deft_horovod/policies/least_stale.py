"""least_stale: of all plans that hide the communication, the one whose updates are the freshest.

What fits behind backward stays synchronous, what fits behind the next forward is gated, and only
the rest comes late (as SAPipe delays the first layers only: Chen et al., "SAPipe: Staleness-Aware
Pipeline for Data-Parallel DNN Training", NeurIPS 2022) or is merged over steps. The model:
docs/internals/solver.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Policy, Request
from deft_horovod.policies.bucket import Bucketed
from deft_horovod.policies.limits import limits_of
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.policies.priority import Priority
from deft_horovod.policies.published.bytescheduler import ByteScheduler
from deft_horovod.policies.published.dcredit import DCredit
from deft_horovod.policies.published.dear import Dear
from deft_horovod.policies.published.mgwfbp import MgWfbp
from deft_horovod.policies.published.p3 import P3
from deft_horovod.policies.published.usbyte import UsByte
from deft_horovod.profile import LinkProfile
from deft_horovod.solver.least_stale.solve import solve

# Exact ones by other rules: none of them shall be predicted to be faster.
_FUSED: Final[tuple[Policy, ...]] = (Bucketed(), Priority(), MgWfbp())
# These send every gradient by itself, which takes long to plan where there are many, and to do.
_SINGLE: Final[tuple[Policy, ...]] = (P3(), ByteScheduler(), UsByte(), DCredit())
_MOST_SINGLE: Final = 320  # gradients


class LeastStale(MeasuredPolicy):
    """`max_delay` and `max_merge` count as 0 and 1 where they are not set: exact synchronous
    training."""

    name = "least_stale"
    summary = "hides the communication with as little staleness as possible"

    def schedule(self, request: Request, link: LinkProfile) -> Plan:
        allowed = limits_of(self.name, request)

        def delayed() -> Plan:
            # OR-Tools takes a while to load, and most jobs never need it.
            from deft_horovod.solver.deft import solve as deft

            return deft.solve(self.name, request.parameters, request.profile, allowed)

        late = delayed if allowed.max_delay and allowed.late_share >= 1.0 else None
        others = _others(request, link)
        return solve(self.name, request.parameters, request.profile, allowed, others, late)


def _others(request: Request, link: LinkProfile) -> Iterator[Plan]:
    few = len(request.parameters) <= _MOST_SINGLE
    for policy in (*_FUSED, *(_SINGLE if few else ())):
        yield policy.plan(request)
    if link.scatter_cost is not None and link.gather_cost is not None:
        yield Dear().plan(request)  # not by what its messages may cost
