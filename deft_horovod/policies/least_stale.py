"""least_stale: of all plans that hide the communication, the one whose updates are the freshest.

What fits behind backward stays synchronous, what fits behind the next forward is gated, and only
the rest comes late (as SAPipe delays the first layers only: Chen et al., "SAPipe: Staleness-Aware
Pipeline for Data-Parallel DNN Training", NeurIPS 2022) or is merged over steps. See docs/solver.md
for the model.
"""

from __future__ import annotations

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request, refuse_groups
from deft_horovod.policies.bucket import Bucketed
from deft_horovod.policies.limits import limits
from deft_horovod.policies.priority import Priority
from deft_horovod.solver.least_stale import solve


class LeastStale:
    name = "least_stale"
    summary = "hides the communication with as little staleness as possible"
    supports_groups = False
    gates = True
    replan_after_steps: int | None = None  # the runtime plans when it has measured
    uses_executor = True
    measures = True

    def plan(self, request: Request) -> Plan:
        """Until the link was measured: what `bucket` does. `max_delay` and `max_merge` count as 0
        and 1 where they are not set: exact synchronous training."""
        refuse_groups(self, request)
        bucket = Bucketed().plan(request)
        if request.profile.link is None or not bucket.buckets:
            return bucket.model_copy(update={"policy": self.name})
        others = (bucket, Priority().plan(request))
        allowed = limits(self.name, request.config)

        def delayed() -> Plan:
            # OR-Tools takes a while to load, and most jobs never need it.
            from deft_horovod.solver import deft

            return deft.solve(self.name, request.parameters, request.profile, allowed)

        late = delayed if allowed.max_delay else None
        return solve(self.name, request.parameters, request.profile, allowed, others, late)
