"""Encoded: the messages of a plan that travel in wire formats, on links that know how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch

from deft_horovod.base.wire_format import EXACT, WireFormat
from deft_horovod.errors import NotSupportedError, explain
from deft_horovod.peers import OVER_TORCH, stock
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.plan.formats import Range, owners, raw_ranges
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.reduction import Reduction

if TYPE_CHECKING:
    from deft_horovod import _C


_TAKES_RESTS: Final = ("all_reduce", "reduce_scatter")  # all values of a rank are in its message
_NONE: Final[Mapping[str, _C.Encoding]] = {}
_PAIR: Final = 2  # ranks, which can sum what they encode (docs/internals/encoded-link.md)


def may_encode(device: torch.device) -> bool:
    """Whether the codec sees what is there. It works in host memory: a CUDA device's messages are
    brought there, unless NCCL alone carries them."""
    if device.type == "cuda":
        return not (OVER_TORCH and stock.nccl_built())
    return device.type == "cpu"


@dataclass(frozen=True)
class LinkPath:
    """How the messages of one link travel between ranks."""

    link: _C.Link
    mesh: _C.MeshLink | None = None  # for plans that encode

    def encoded(
        self,
        size: int,
        rank: int,
        factor: float,
        encodings: Mapping[str, _C.Encoding],
        roll_call: str = "",
        exact: Mapping[str, _C.Encoding] = _NONE,
    ) -> _C.Link:
        """The link with an encoded link in it: around what carries host memory, which a device's
        messages reach with `encodings` staged, whatever the link does with others. `exact`: as
        float32, of those that go over the mesh as they are."""

        def around(inner: _C.Link) -> _C.EncodedLink:
            way = self.mesh, exact
            return native.EncodedLink(inner, size, rank, factor, encodings, roll_call, *way)

        if isinstance(self.link, native.StagedLink):
            return self.link.around(around(self.link.inner), set(encodings))
        return around(self.link)


def encodings_of(plan: Plan, rank: int, size: int) -> dict[int, _C.Encoding]:
    """Of each bucket that travels in a wire format between so many ranks."""
    members = contents(plan.slots, plan.buckets)
    found = {}
    for index, bucket in enumerate(plan.buckets):
        if bucket.format == EXACT:
            continue
        elements, raw = bucket.end - bucket.begin, raw_ranges(plan, members, index)
        shares = owners(bucket.format, elements, size, plan.second_stage_bytes)
        found[index] = encoding_of(bucket.format, elements, raw, shares, rank)
    return found


def encoding_of(
    wire_format: WireFormat, elements: int, raw: Sequence[Range], shares: int, rank: int
) -> _C.Encoding:
    """Of a message of so many shares, one for each rank, or one in all."""
    return native.Encoding(wire_format, elements, raw, shares, rank if shares > 1 else 0)


def whole_of(plan: Plan, parameters: AbstractSet[str]) -> dict[int, _C.Encoding]:
    """Of each bucket that travels as it is and holds any of these: what takes their rests along."""
    members = contents(plan.slots, plan.buckets)
    found = {}
    for index, bucket in enumerate(plan.buckets):
        arena = plan.arenas[bucket.arena]
        fits = bucket.format == EXACT and arena.wire == "float32"
        if fits and any(plan.slots[slot].name in parameters for slot in members[index]):
            raw = raw_ranges(plan, members, index)
            found[index] = native.Encoding.whole(bucket.end - bucket.begin, raw)
    return found


def factor_of(reduction: Reduction) -> float:
    """Of a sum of all ranks' values."""
    size: int = reduction.process_set.size()
    return 1.0 / size if reduction.op == stock.Average else 1.0


def links_of(
    plan: Plan,
    opened: Mapping[str, LinkPath],
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
            name: encodings[bucket]
            for index, task in enumerate(plan.tasks)
            if task.link == number
            and task.op in _TAKES_RESTS
            and (bucket := plan.generations[task.generation].bucket) in encodings
            for name in _names(f"{prefix}.t{index}", plan, in_order=link.plan_order)
        }
        path = opened[link.name]
        if not carried:
            found.append(path.link)
            continue
        # Nothing but sums comes from a rank in hvd.join(). None can join with a second link, or
        # over torch.distributed.
        sums = ranks.size() <= _PAIR and path.mesh is None
        may_miss = not sums and len(plan.links) == 1 and not OVER_TORCH
        roll_call = f"{prefix}.here" if may_miss else ""
        exact = _exact_on(plan, number, prefix, reduction) if path.mesh is not None else _NONE
        found.append(path.encoded(ranks.size(), ranks.rank(), factor, carried, roll_call, exact))
    return found


def _exact_on(plan: Plan, link: int, prefix: str, reduction: Reduction) -> dict[str, _C.Encoding]:
    """As float32, of the messages of a link that travel over its mesh as they are: all, where any
    is encoded. On another path they would wait behind what is encoded, and it behind them."""
    size, rank = reduction.process_set.size(), reduction.process_set.rank()
    found: dict[str, _C.Encoding] = {}
    encodes = False
    for index, task in enumerate(plan.tasks):
        bucket = plan.buckets[plan.generations[task.generation].bucket]
        if task.link != link or task.op != "all_reduce":
            continue
        encodes = encodes or bucket.format != EXACT
        if bucket.format == EXACT and plan.arenas[bucket.arena].wire == "float32":
            elements = bucket.end - bucket.begin
            shares = owners(EXACT, elements, size, plan.second_stage_bytes)
            for name in _names(f"{prefix}.t{index}", plan, in_order=plan.links[link].plan_order):
                found[name] = encoding_of(EXACT, elements, (), shares, rank)
    return found if encodes else {}


def _names(name: str, plan: Plan, *, in_order: bool) -> list[str]:
    """Of the messages of a task, as the session calls them."""
    return [name] if in_order else [f"{name}.{buffer}" for buffer in range(plan.buffers)]


def require_between_steps(agreement: Agreement, *, in_step: bool) -> None:
    """How a message travels must not change while some ranks may have sent it already."""
    if any(agreement.union([in_step])):
        raise NotSupportedError(
            explain(
                "flush(rests=True) between backward() and step()",
                rank=stock.rank(),
                observed="gradients of this step on a rank, which may have left",
                expected="a call between step() and the next backward()",
                action="call flush(rests=True) after step()",
            )
        )
