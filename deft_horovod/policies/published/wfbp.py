"""wfbp: one message for each gradient, as soon as it is ready.

Wait-free backpropagation (Zhang et al., "Poseidon: An Efficient Communication Architecture for
Distributed Deep Learning on GPU Clusters", USENIX ATC 2017): a layer's gradient travels while
backward is still busy with the layers before it.
"""

from __future__ import annotations

from deft_horovod.plan import Bucket, Plan
from deft_horovod.policies.base import Defaults, Request, plan_as_ready, refuse_groups
from deft_horovod.solver.messages.layout import lay_out


class Wfbp(Defaults):
    name = "wfbp"
    summary = "one message for each gradient, as soon as it is ready"
    # Planned once: with one slot a message the order changes nothing.

    def plan(self, request: Request) -> Plan:
        refuse_groups(self, request)
        order = request.profile.ready_order
        layout = lay_out(request.parameters, order)
        buckets = tuple(
            Bucket(arena=arena, begin=span.begin, end=span.end)
            for arena, spans in enumerate(layout.spans)
            for span in spans
        )
        return plan_as_ready(self.name, layout, buckets, order)
