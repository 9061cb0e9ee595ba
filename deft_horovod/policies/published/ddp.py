"""ddp: the buckets of PyTorch's DistributedDataParallel.

The rule of Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training",
VLDB 2020, and of its code: gradients in the order in which they become ready; a bucket is closed by
the gradient that carries it to its cap (1 MB for the first, 25 MB for all others) or beyond; they
leave one after another in this order, and all are waited for before the update.
"""

from __future__ import annotations

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Defaults, Request, plan_as_ready, refuse_groups
from deft_horovod.policies.pieces import horovod_link
from deft_horovod.solver.messages.fusion import fuse
from deft_horovod.solver.messages.layout import lay_out


class Ddp(Defaults):
    name = "ddp"
    summary = "the buckets of PyTorch's DistributedDataParallel, in their order"
    # Planned once: the first plan has seen a whole step already.

    def plan(self, request: Request) -> Plan:
        refuse_groups(self, request)
        order = request.profile.ready_order
        layout = lay_out(request.parameters, order)
        buckets = fuse(
            layout,
            first_bucket_bytes=request.config.first_bucket_bytes,
            bucket_bytes=request.config.bucket_bytes,
            overshoot=True,
        )
        return plan_as_ready(self.name, layout, buckets, order, horovod_link())
