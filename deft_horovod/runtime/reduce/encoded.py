"""Encoded: the messages of a plan that travel in wire formats, on links that know how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import horovod.torch as stock

from deft_horovod.base.wire_format import EXACT
from deft_horovod.errors import NotSupportedError, explain
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.plan.formats import is_encoded, raw_ranges
from deft_horovod.plan.formats_text import formats_text
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.reduction import Reduction

if TYPE_CHECKING:
    from deft_horovod import _C


_SUMMED: Final = 2  # ranks between which encoded messages are sums (docs/internals/encoded-link.md)


def encodings_of(plan: Plan, rank: int, size: int) -> dict[int, _C.Encoding]:
    """Of each bucket that travels in a wire format between so many ranks."""
    members = contents(plan.slots, plan.buckets)
    found = {}
    for index, bucket in enumerate(plan.buckets):
        if bucket.format == EXACT:
            continue
        elements, raw = bucket.end - bucket.begin, raw_ranges(plan, members, index)
        owners = native.encoding_owners(bucket.format, elements, size)
        mine = rank if owners > 1 else 0
        found[index] = native.Encoding(bucket.format, elements, raw, owners, mine)
    return found


def factor_of(reduction: Reduction) -> float:
    """Of a sum of all ranks' values."""
    size: int = reduction.process_set.size()
    return 1.0 / size if reduction.op == stock.Average else 1.0


def links_of(
    plan: Plan,
    opened: Mapping[str, _C.Link],
    prefix: str,
    reduction: Reduction,
    encodings: Mapping[int, _C.Encoding],
) -> list[_C.Link]:
    """Those that the plan names, in its order. All generations of a bucket share an encoding: what
    rounding leaves of one goes into the next."""
    ranks, factor = reduction.process_set, factor_of(reduction)
    found = []
    for number, link in enumerate(plan.links):
        carried = {
            f"{prefix}.t{index}": encodings[bucket]
            for index, task in enumerate(plan.tasks)
            if task.link == number
            and (bucket := plan.generations[task.generation].bucket) in encodings
        }
        path = opened[link.name]
        if carried:
            path = native.EncodedLink(path, ranks.size(), ranks.rank(), factor, carried)
        found.append(path)
    return found


def refuse_join(plan: Plan, ranks: int) -> None:
    """Horovod fills in zeros for a rank that has left in sums alone. Between two ranks encoded
    messages are sums, between more they are gathered."""
    if is_encoded(plan) and ranks > _SUMMED:
        raise NotSupportedError(
            explain(
                "hvd.join() while gradients travel in wire formats",
                rank=stock.rank(),
                observed=f"a plan with {formats_text(plan)}",
                expected="all values as they are: Horovod gathers nothing from a rank that joined",
                action="set accuracy to 'exact', or give every rank as many steps",
            )
        )
