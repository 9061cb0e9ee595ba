"""fewest_bytes: as least_stale, with everything in the coarsest format that accuracy allows.

Links are measured while processors rest. Where training keeps every core busy, messages and
computing slow each other down, and a format that seemed to hide everything does not. This one
rounds what may be rounded, whether that seems to be needed or not, and plans for a link whose
messages take as long as those do. Ours.
"""

from __future__ import annotations

from dataclasses import replace

from deft_horovod.base.wire_format import WireFormat
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.plan.formats import may_shrink
from deft_horovod.policies.base import Request
from deft_horovod.policies.limits import limits_of
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.profile import LinkProfile, Profile
from deft_horovod.solver.least_stale.solve import solve


class FewestBytes(MeasuredPolicy):
    """Nothing is late. Without formats it plans what `least_stale` does then."""

    name = "fewest_bytes"
    summary = "as least_stale, with all that may be rounded in the coarsest format"

    def schedule(self, request: Request, link: LinkProfile) -> Plan:  # noqa: ARG002
        allowed = limits_of(self.name, request)
        profile, exact = request.profile, replace(allowed, formats=())
        for wire_format in reversed(allowed.formats):
            if all(link.cost_in(wire_format) for link in profile.links):
                cheaper = _cheaper(profile, wire_format)
                plan = solve(self.name, request.parameters, cheaper, exact)
                return _encoded(plan, wire_format)
        return solve(self.name, request.parameters, profile, exact)


def _cheaper(profile: Profile, wire_format: WireFormat) -> Profile:
    """With links on which every message takes as long as one in this format."""
    links = tuple(
        link.model_copy(update={"cost": link.cost_in(wire_format), "busy_cost": None})
        for link in profile.links
    )
    return profile.model_copy(update={"links": links})


def _encoded(plan: Plan, wire_format: WireFormat) -> Plan:
    """With its messages in this format, but for those that are exact for the most part. What was
    predicted is left out: it is of other links."""
    buckets = list(plan.buckets)
    for index, members in enumerate(contents(plan.slots, plan.buckets)):
        slots = [plan.slots[member] for member in members]
        if may_shrink(plan.arenas[buckets[index].arena].wire, slots):
            buckets[index] = buckets[index].model_copy(update={"format": wire_format})
    return plan.model_copy(update={"buckets": tuple(buckets), "prediction": None})
