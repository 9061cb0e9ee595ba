"""p3: gradients cut into slices; of those that are ready the one that forward needs first leaves.

After P3 (Jayarajan, Wei, Gibson, Fedorova and Pekhimenko, "Priority-based Parameter Propagation for
Distributed DNN Training", MLSys 2019): slices finer than layers, sent by the priority of their
layer, so that an urgent one waits for one slice at most. One slice is in flight at a time. The
paper's parameter server is an all-reduce here, and the size of a slice, which pays a start-up time
each, is that with the shortest predicted step (`partition_bytes` where `tune` is off).
"""

from __future__ import annotations

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.policies.pieces import by_priority, horovod_link, plan_of_pieces, wire_bytes
from deft_horovod.policies.published.tuning import fastest, piece_sizes_bytes
from deft_horovod.profile import LinkProfile


class P3(MeasuredPolicy):
    name = "p3"
    summary = "slices of gradients, one at a time, what forward needs first leaves first (P3)"

    def schedule(self, request: Request, link: LinkProfile) -> Plan:
        config, one = request.config, horovod_link(credit_messages=1)
        sizes = [config.partition_bytes]
        if config.tune:
            sizes = piece_sizes_bytes(wire_bytes(request))
        return fastest(
            (
                plan_of_pieces(self.name, request, by_priority(request, link, size, one), one)
                for size in sizes
            ),
            request.profile,
        )
