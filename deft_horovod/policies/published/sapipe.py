"""sapipe: the first layers are updated one step late, all others in time.

After SAPipe (Chen, Xie, Ma, Gu, Peng, Lin, Wu and Zhu, "SAPipe: Staleness-Aware Pipeline for
Data-Parallel DNN Training", NeurIPS 2022): what forward needs first is ready last, so no order of
messages hides it, but one step of delay for the first n layers does. The rest is waited for just
before its own forward.

What is ours: n, which the published code takes from the user, is the smallest with which the
predicted step is within 1 % of the shortest one; late gradients leave behind those that are not;
gradients are cut as for `bytescheduler` or not at all. Of the paper's corrections for stale
gradients one is used, the prediction of weights from own and previous gradients.
"""

from __future__ import annotations

from typing import Final

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request
from deft_horovod.policies.limits import limits_of
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.policies.pieces import (
    by_priority,
    horovod_link,
    plan_of_pieces,
    use_order,
    wire_bytes,
)
from deft_horovod.policies.published.bytescheduler import PieceSizes, tuned
from deft_horovod.profile import LinkProfile
from deft_horovod.solver.predict.timeline import simulate

_NEAR: Final = 0.01
# Numbers of layers that are tried; of many gradients, where each trial takes long, fewer.
_TRIED: Final = 12
_FEWER: Final = 2
_MANY: Final = 320


class SaPipe(MeasuredPolicy):
    name = "sapipe"
    summary = "the first layers come one step late, all others in time (SAPipe)"
    correction = "own_and_previous"

    def schedule(self, request: Request, link: LinkProfile) -> Plan:
        settings = _settings(request, link)
        plans = [
            (len(late), self._plan(request, link, setting, late))
            for late in _firsts(request)
            for setting in settings
        ]
        found = [(late, simulate(plan, request.profile).step_us, plan) for late, plan in plans]
        limit_us = (1.0 + _NEAR) * min(step_us for _, step_us, _ in found)
        near = [one for one in found if one[1] <= limit_us]
        return min(near, key=lambda one: one[:2])[2]

    def _plan(
        self, request: Request, link: LinkProfile, setting: PieceSizes, late: frozenset[int]
    ) -> Plan:
        limited = horovod_link(credit_bytes=setting.credit_bytes)
        pieces = by_priority(request, link, setting.partition_bytes, limited)
        order = sorted(pieces, key=lambda piece: piece.parameter in late)
        return plan_of_pieces(self.name, request, order, limited, late)


def _settings(request: Request, link: LinkProfile) -> list[PieceSizes]:
    """What suits `bytescheduler`; and nothing cut, as what is late need not be."""
    found, _ = tuned(request, link)
    if not request.config.tune or len(request.parameters) > _MANY:
        return [found]
    whole = sum(wire_bytes(request))
    return [found, PieceSizes(whole, whole)]


def _firsts(request: Request) -> list[frozenset[int]]:
    """Sets of first parameters, the smaller ones first; steps of about equal size."""
    sets: list[frozenset[int]] = [frozenset()]
    if not limits_of(SaPipe.name, request).max_delay:
        return sets
    order, sizes = use_order(request.profile), wire_bytes(request)
    least_bytes = sum(sizes) / (_FEWER if len(order) > _MANY else _TRIED)
    since_bytes = 0
    for count, index in enumerate(order, 1):
        since_bytes += sizes[index]
        if since_bytes >= least_bytes or count in (1, len(order)):
            sets.append(frozenset(order[:count]))
            since_bytes = 0
    return sets
