"""bucket: gradients fused in the order in which they become ready.

The rule of PyTorch's DistributedDataParallel (Li et al., "PyTorch Distributed: Experiences on
Accelerating Data Parallel Training", VLDB 2020): first by the reversed order of registration, then,
once a backward was seen, by the order in which gradients really became ready.
"""

from __future__ import annotations

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Defaults, Request, plan_as_ready
from deft_horovod.solver.messages.fusion import fuse
from deft_horovod.solver.messages.layout import lay_out, order_with_groups


class Bucketed(Defaults):
    name = "bucket"
    summary = "gradients fused into buckets in ready order"
    supports_groups = True
    # Planned once: the first plan has seen a whole step already.

    def plan(self, request: Request) -> Plan:
        order = order_with_groups(request.profile.ready_order, request.groups)
        layout = lay_out(request.parameters, order)
        buckets = fuse(
            layout,
            first_bucket_bytes=request.config.first_bucket_bytes,
            bucket_bytes=request.config.bucket_bytes,
            groups=request.groups,
        )
        return plan_as_ready("bucket", layout, buckets, order)
