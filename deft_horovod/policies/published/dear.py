"""dear: reduce-scatter behind backward, all-gather behind the next forward.

DeAR (Zhang, Shi, Chu, Wang, Li and Liu, ICDCS 2023; arXiv 2302.12445): an all-reduce is a
reduce-scatter and an all-gather, and only the first half has to be behind backward. Neighbouring
layers are fused, in the order of forward, up to a threshold. Their reduce-scatters leave as they
are complete; when all have left, the all-gathers follow in the order in which forward uses the
groups, and the update of a layer waits just before its own forward.

What differs: the update is that of the user's own optimizer, not SGD alone; the last step is
applied like every other; the boundary waits for no reduce-scatter, as the first all-gather stands
behind all of them anyway; and the threshold is searched on the simulated timeline instead of by
Bayesian optimisation in the running job (with `tune` off it is `bucket_bytes`).
"""

from __future__ import annotations

from deft_horovod.plan import Generation, Plan, Task
from deft_horovod.plan.contents import contents
from deft_horovod.policies.base import Request, complete_order
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.policies.pieces import horovod_link, need_us, use_order, wire_bytes
from deft_horovod.policies.published.tuning import fastest, sizes_bytes
from deft_horovod.profile import LinkProfile
from deft_horovod.solver.messages.fusion import fuse
from deft_horovod.solver.messages.layout import lay_out


class Dear(MeasuredPolicy):
    name = "dear"
    summary = "reduce-scatter behind backward, all-gather behind the next forward (DeAR)"
    splits = True

    def schedule(self, request: Request, link: LinkProfile) -> Plan:  # noqa: ARG002 (the plans know)
        config = request.config
        sizes = sizes_bytes(sum(wire_bytes(request))) if config.tune else [config.bucket_bytes]
        return fastest((_plan(self.name, request, size) for size in sizes), request.profile)


def _plan(policy: str, request: Request, threshold_bytes: int) -> Plan:
    """A group with a parameter that nothing can gate is gathered before the boundary."""
    profile = request.profile
    layout = lay_out(request.parameters, use_order(profile))
    buckets = fuse(layout, first_bucket_bytes=threshold_bytes, bucket_bytes=threshold_bytes)
    members = contents(layout.slots, buckets)
    gated = [all(profile.first_use_us[i] is not None for i in inside) for inside in members]
    needed_us = [min(need_us(profile, index) for index in inside) for inside in members]
    scatters = [
        Task(generation=index, op="reduce_scatter")
        for index in complete_order(layout.slots, buckets, profile.ready_order)
    ]
    gathers = [
        Task(generation=index, op="all_gather")
        if not gated[index]
        else Task(generation=index, op="all_gather", step=1, stage="forward")
        for index in sorted(range(len(buckets)), key=lambda b: (gated[b], needed_us[b], b))
    ]
    return Plan(
        policy=policy,
        links=(horovod_link(),),
        arenas=layout.arenas,
        slots=layout.slots,
        buckets=buckets,
        generations=tuple(
            Generation(bucket=index, gated=is_gated) for index, is_gated in enumerate(gated)
        ),
        tasks=(*scatters, *gathers),
    )
