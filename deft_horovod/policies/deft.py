"""deft: stages of compute as knapsacks of link time; what does not fit comes later, as a sum.

After DeFT (Meng, Sun and Zhu, "Relaxing data dependencies for efficient communication scheduling in
distributed training", FGCS 175, 2026; arXiv 2503.16815). What is public of it is an abstract; what
is ours is in docs/differences-from-the-paper.md.
"""

from __future__ import annotations

from deft_horovod.errors import ConfigError, explain
from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request, refuse_groups
from deft_horovod.policies.bucket import Bucketed
from deft_horovod.policies.limits import limits
from deft_horovod.solver.problem import Limits


class Deft:
    name = "deft"
    summary = "stages of compute as knapsacks; what does not fit comes later, as a sum (DeFT)"
    supports_groups = False
    gates = False
    replan_after_steps: int | None = None  # the runtime plans when it has measured
    uses_executor = True
    measures = True

    def plan(self, request: Request) -> Plan:
        """Until the link was measured: what `bucket` does."""
        refuse_groups(self, request)
        allowed = _limits(request)
        bucket = Bucketed().plan(request)
        if request.profile.link is None or not bucket.buckets:
            return bucket.model_copy(update={"policy": self.name})
        # OR-Tools takes a while to load, and most ranks never need it.
        from deft_horovod.solver.deft import solve

        return solve(self.name, request.parameters, request.profile, allowed)


def _limits(request: Request) -> Limits:
    allowed = limits(Deft.name, request.config)
    if allowed.max_delay < 1:
        raise ConfigError(
            explain(
                "policy 'deft' delays updates, and max_delay forbids it",
                observed=f"max_delay = {allowed.max_delay}",
                expected="1 or more, or unset",
                action="use policy 'least_stale', 'bucket' or 'priority' for synchronous training",
            )
        )
    return allowed
