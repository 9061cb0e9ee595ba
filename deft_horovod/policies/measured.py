"""What policies have in common that plan from a whole profile."""

from __future__ import annotations

from abc import ABC, abstractmethod

from deft_horovod.plan import Plan
from deft_horovod.plan.formats import is_encoded
from deft_horovod.policies.base import Defaults, Request, refuse_groups
from deft_horovod.policies.bucket import Bucketed
from deft_horovod.policies.limits import limits_of
from deft_horovod.profile import LinkProfile
from deft_horovod.solver.predict.bounds import bound_us
from deft_horovod.solver.predict.prediction import predict


class MeasuredPolicy(Defaults, ABC):
    """Until the link was measured it does what `bucket` does."""

    name: str
    summary: str
    gates = True
    measures = True

    def plan(self, request: Request) -> Plan:
        refuse_groups(self, request)
        first = Bucketed().plan(request)
        if not request.profile.links or not first.buckets:
            return first.model_copy(update={"policy": self.name})
        link = request.profile.links[0]
        plan = self.schedule(request, link)
        if is_encoded(plan):
            start_up_bytes = link.cost.start_up_bytes(request.profile.size)
            plan = plan.model_copy(update={"second_stage_bytes": start_up_bytes})
        if plan.prediction is not None:
            return plan
        allowed = limits_of(self.name, request)
        bound = bound_us(request.parameters, request.profile, allowed)
        return predict(plan, request.profile, bound_us=bound)

    @abstractmethod
    def schedule(self, request: Request, link: LinkProfile) -> Plan:
        """The plan for at least one parameter; `link` is Horovod's. What it predicts
        is added where it says nothing itself."""
