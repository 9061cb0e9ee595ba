"""mgwfbp: neighbouring gradients are merged where waiting costs less than another start-up.

MG-WFBP (Shi, Chu and Li, "MG-WFBP: Efficient Data Communication for Distributed Synchronous SGD
Algorithms", INFOCOM 2019; arXiv 1811.11141). A message of x bytes takes alpha + beta x, and starts
when its gradients are ready and the one before it has arrived. In the order in which gradients
become ready, a message takes the next gradient along

- if that is ready before the message could start at all, or
- if waiting for it costs less than alpha, the start-up that is saved,

and nothing is gained by merging a gradient that is ready only after the message has arrived. Times
are computed anew after each merge. All are waited for before the update.
"""

from __future__ import annotations

from collections.abc import Sequence

from deft_horovod.plan import Bucket, Plan
from deft_horovod.policies.base import Request, plan_as_ready
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.policies.pieces import horovod_link, wire_bytes
from deft_horovod.profile import LinkCost, LinkProfile
from deft_horovod.solver.messages.layout import Layout, lay_out


class MgWfbp(MeasuredPolicy):
    name = "mgwfbp"
    summary = "neighbours are merged where waiting costs less than a start-up (MG-WFBP)"
    gates = False

    def schedule(self, request: Request, link: LinkProfile) -> Plan:
        order, sizes = request.profile.by_ready_time(), wire_bytes(request)
        layout = lay_out(request.parameters, order)
        groups = merged(
            [request.profile.ready_in_backward_us(index) for index in order],
            [sizes[index] for index in order],
            [layout.slots[index].arena for index in order],
            link.cost,
        )
        buckets = _buckets(layout, [[order[place] for place in group] for group in groups])
        return plan_as_ready(self.name, layout, buckets, order, horovod_link())


def merged(
    ready_us: Sequence[float],
    sizes_bytes: Sequence[int],
    kinds: Sequence[object],
    cost: LinkCost,
) -> list[list[int]]:
    """Groups of neighbours, in the order of readiness (ascending). Different kinds never travel
    together."""
    groups: list[list[int]] = []
    free_us = 0.0  # when the message before the last group has arrived
    starts_us = ends_us = 0.0  # of the last group
    group_bytes = 0
    for index, next_us in enumerate(ready_us):
        if groups and kinds[groups[-1][-1]] == kinds[index] and next_us < ends_us:
            not_started = starts_us > next_us
            if not_started or next_us - starts_us < cost.alpha_us:
                groups[-1].append(index)
                group_bytes += sizes_bytes[index]
                starts_us = max(free_us, next_us)
                ends_us = starts_us + cost.time_us(group_bytes)
                continue
        free_us = ends_us
        groups.append([index])
        group_bytes = sizes_bytes[index]
        starts_us = max(free_us, next_us)
        ends_us = starts_us + cost.time_us(group_bytes)
    return groups


def _buckets(layout: Layout, groups: Sequence[Sequence[int]]) -> tuple[Bucket, ...]:
    """Those of one group stand side by side in their arena."""
    spans = {span.parameter: span for arena in layout.spans for span in arena}
    return tuple(
        Bucket(
            arena=layout.slots[group[0]].arena,
            begin=spans[group[0]].begin,
            end=spans[group[-1]].end,
        )
        for group in groups
    )
