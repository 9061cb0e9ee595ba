"""priority: what the next forward needs first leaves first, and forward waits layer by layer.

After ByteScheduler (Peng et al., "A Generic Communication Scheduler for Distributed DNN Training
Acceleration", SOSP 2019): gradients are cut into pieces, pieces leave in the order in which forward
uses their parameters, a credit bounds what is in flight, and the update of a layer is waited for
just before its own forward. Three things differ. The order is simulated once from the measured
profile and then fixed, since it has to be the same on all ranks. Small gradients share a piece,
since each message has a start-up time. And each parameter is updated by the user's own optimizer,
whichever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deft_horovod.plan import Bucket, Generation, Link, Plan, Task
from deft_horovod.plan.contents import contents
from deft_horovod.policies.base import Defaults, Request, complete_order, refuse_groups
from deft_horovod.policies.pieces import horovod_link, need_us, use_order
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.solver.messages.layout import Layout, lay_out
from deft_horovod.solver.messages.partition import partition
from deft_horovod.solver.predict.priority_queue import QueuedMessage, departures


@dataclass(frozen=True)
class _Cut:
    layout: Layout
    buckets: tuple[Bucket, ...]
    members: tuple[tuple[int, ...], ...]  # the parameters of each bucket
    gated: list[bool]  # of each bucket


class Priority(Defaults):
    name = "priority"
    summary = "pieces leave in the order in which the next forward needs them (ByteScheduler)"
    gates = True
    replan_after_steps = 3

    def plan(self, request: Request) -> Plan:
        refuse_groups(self, request)
        profile, config = request.profile, request.config
        link = horovod_link(config.credit_bytes, config.credit_messages)
        cut = _cut(request)
        if profile.link is None:
            tasks = _in_ready_order(cut, profile.ready_order)
        else:
            tasks = _by_priority(cut, profile, link, profile.link)
        return Plan(
            policy=self.name,
            links=(link,),
            arenas=cut.layout.arenas,
            slots=cut.layout.slots,
            buckets=cut.buckets,
            generations=tuple(
                Generation(bucket=index, gated=gated) for index, gated in enumerate(cut.gated)
            ),
            tasks=tasks,
        )


def _cut(request: Request) -> _Cut:
    """Pieces in the order of use. What no gate can wait for is needed at the boundary itself, that
    is before everything else, and shares no piece with what is gated."""
    first_use = request.profile.first_use_us
    layout = lay_out(request.parameters, use_order(request.profile))
    gateable = [use is not None for use in first_use]
    buckets = partition(layout, partition_bytes=request.config.partition_bytes, classes=gateable)
    members = contents(layout.slots, buckets)
    return _Cut(layout, buckets, members, [gateable[inside[0]] for inside in members])


def _in_ready_order(cut: _Cut, ready_order: Sequence[int]) -> tuple[Task, ...]:
    """Before the link was measured: everything leaves in backward, as it becomes ready."""
    order = complete_order(cut.layout.slots, cut.buckets, ready_order)
    return tuple(Task(generation=index) for index in order)


def _by_priority(cut: _Cut, profile: Profile, link: Link, cost: LinkCost) -> tuple[Task, ...]:
    """In simulated order; what has not left when backward ends leaves in the next forward.

    Ungated pieces come first in the queue, so those that backward leaves behind leave before any
    gated one and all of them stay in the backward window, as the boundary that waits for them
    demands.
    """
    messages = []
    for bucket, inside in zip(cut.buckets, cut.members, strict=True):
        items = bucket.end - bucket.begin
        messages.append(
            QueuedMessage(
                bytes=items * cut.layout.item_bytes(bucket.arena),
                ready_us=max(profile.ready_in_backward_us(i) for i in inside),
                priority=min(need_us(profile, i) for i in inside),
            )
        )
    return tuple(
        Task(generation=departure.message, step=1, stage="forward")
        if cut.gated[departure.message] and departure.leaves_us > profile.backward_us
        else Task(generation=departure.message)
        for departure in departures(messages, link, cost)
    )
