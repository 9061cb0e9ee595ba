"""deft: stages of compute as knapsacks of link time; what does not fit comes later, as a sum.

After DeFT (Meng, Sun and Zhu, "Relaxing data dependencies for efficient communication scheduling in
distributed training", FGCS 175, 2026; arXiv 2503.16815). What is public of it is an abstract; what is
ours is in docs/differences-from-the-paper.md. The readable reference: policy 'least_stale' asks for
the same hidden communication with less staleness.
"""

from __future__ import annotations

from deft_horovod.errors import ConfigError, explain
from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request, refuse_groups
from deft_horovod.policies.bucket import Bucketed
from deft_horovod.solver.assemble import assemble
from deft_horovod.solver.blocks import block_up
from deft_horovod.solver.bounds import bound_us
from deft_horovod.solver.deft import schedule
from deft_horovod.solver.least_stale import link_sets
from deft_horovod.solver.prediction import predict
from deft_horovod.solver.problem import Limits, problem_of

_MAX_DELAY = 1
_MAX_MERGE = 4


class Deft:
    name = "deft"
    summary = "stages of compute as knapsacks; what does not fit comes later, as a sum (DeFT)"
    supports_groups = False
    gates = False
    replan_after_steps: int | None = None  # the runtime plans when it has measured
    uses_executor = True

    def plan(self, request: Request) -> Plan:
        """Until the link was measured: what `bucket` does."""
        refuse_groups(self, request)
        limits = _limits(request)
        bucket = Bucketed().plan(request)
        profile = request.profile
        if profile.link is None or not bucket.buckets:
            return bucket.model_copy(update={"policy": self.name})
        blocking = block_up(request.parameters, profile)
        links = link_sets(profile)[-1]
        found = schedule(problem_of(blocking, profile, limits, links))
        plan = assemble(
            self.name,
            blocking,
            found.period,
            found.timings,
            found.departures,
            [profile.links[link].name for link in links],
        )
        bound = bound_us(request.parameters, profile, limits)
        return predict(plan, profile, bound_us=bound, status="feasible")


def _limits(request: Request) -> Limits:
    config = request.config
    max_delay = _MAX_DELAY if config.max_delay is None else config.max_delay
    if max_delay < 1:
        raise ConfigError(
            explain(
                "policy 'deft' delays updates, and max_delay forbids it",
                observed=f"max_delay = {max_delay}",
                expected="1 or more, or unset",
                action="use policy 'least_stale', 'bucket' or 'priority' for synchronous training",
            )
        )
    return Limits(max_delay, config.max_merge or _MAX_MERGE)
