"""deft: stages of compute as knapsacks of link time; what does not fit comes later, as a sum.

After DeFT (Meng, Sun and Zhu, "Relaxing data dependencies for efficient communication scheduling in
distributed training", FGCS 175, 2026; arXiv 2503.16815). What is public of it is an abstract; what
is ours is in docs/internals/differences-from-the-paper.md.
"""

from __future__ import annotations

from deft_horovod.errors import ConfigError, explain
from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request
from deft_horovod.policies.limits import limits_of
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.profile import LinkProfile
from deft_horovod.solver.problem import Limits


class Deft(MeasuredPolicy):
    name = "deft"
    summary = "stages of compute as knapsacks; what does not fit comes later, as a sum (DeFT)"
    gates = False

    def plan(self, request: Request) -> Plan:
        _limits(request)  # what cannot be allowed is refused at once
        return super().plan(request)

    def schedule(self, request: Request, link: LinkProfile) -> Plan:  # noqa: ARG002 (all links count)
        # OR-Tools takes a while to load, and most ranks never need it.
        from deft_horovod.solver.deft.solve import solve

        return solve(self.name, request.parameters, request.profile, _limits(request))


def _limits(request: Request) -> Limits:
    allowed = limits_of(Deft.name, request)
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
