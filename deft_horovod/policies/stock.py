"""stock: Horovod's own optimizer does everything; the reference to which all others compare."""

from __future__ import annotations

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Defaults, Request


class Stock(Defaults):
    name = "stock"
    summary = "hand everything to Horovod's own optimizer"
    supports_groups = True  # Horovod's own grouped all-reduce
    uses_executor = False

    def plan(self, request: Request) -> Plan:  # noqa: ARG002 (the same for all)
        """An empty plan, so that ranks can compare plans whatever the policy."""
        return Plan(policy=self.name)
