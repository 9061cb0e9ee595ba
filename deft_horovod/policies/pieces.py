"""Pieces: gradients cut into messages, in the order in which a rule says that they leave.

The schedulers that cut gradients differ in the sizes of the pieces and in their order. What they
share is here: each gradient is by itself (a message never carries parts of two), the update of a
layer waits just before its own forward, and the order is fixed in the plan, since all ranks have to
send the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from deft_horovod.plan import Bucket, Generation, Link, Plan, Task
from deft_horovod.plan.rules import ALIGN_BYTES, MOST_UNFUSED, buffers_needed
from deft_horovod.policies.base import Request
from deft_horovod.profile import HOROVOD_LINK, LinkProfile, Profile
from deft_horovod.solver.messages.layout import Layout, Span, lay_out, slot_bytes
from deft_horovod.solver.predict.priority_queue import QueuedMessage, departures


@dataclass(frozen=True)
class Piece:
    """The next so many bytes of a gradient. The last piece of each takes what is left."""

    parameter: int
    bytes: int
    # It leaves behind the boundary, in the next forward. Not if nothing can be gated by it.
    forward: bool = False


def need_us(profile: Profile, parameter: int) -> float:
    """When forward uses it. Without a known use: at the boundary, so before everything else."""
    use_us = profile.first_use_us[parameter]
    return -1.0 if use_us is None else use_us


def use_order(profile: Profile) -> list[int]:
    """The parameters in the order in which forward uses them."""
    count = len(profile.first_use_us)
    return sorted(range(count), key=lambda index: (need_us(profile, index), index))


def wire_bytes(request: Request) -> tuple[int, ...]:
    """What each gradient takes on the wire, with its header."""
    return tuple(slot_bytes(parameter) for parameter in request.parameters)


def even_pieces(size_bytes: int, piece_bytes: int) -> list[int]:
    """The sizes of the pieces: `piece_bytes`, rounded down to what is aligned, and the rest."""
    step = max(ALIGN_BYTES, piece_bytes // ALIGN_BYTES * ALIGN_BYTES)
    count = max(1, -(-size_bytes // step))
    return [step] * (count - 1) + [size_bytes - (count - 1) * step]


def plan_of_pieces(
    policy: str,
    request: Request,
    pieces: Sequence[Piece],
    link: Link,
    late: Set[int] = frozenset(),
) -> Plan:
    """The plan in which these messages leave, in this order.

    What cannot be gated is needed at the boundary: it leaves in backward, and before anything that
    leaves behind it. The gradients of the parameters in `late` are applied one step late.
    """
    profile = request.profile
    layout = lay_out(request.parameters, use_order(profile))
    own: dict[int, list[int]] = defaultdict(list)  # the pieces of each parameter
    for index, piece in enumerate(pieces):
        own[piece.parameter].append(index)
    buckets: list[Bucket] = []
    bucket_of: dict[int, int] = {}  # of a piece; pieces too small to be cut off have none
    generations: list[Generation] = []
    for arena, spans in enumerate(layout.spans):
        for span in spans:
            mine = own[span.parameter]
            for index, (begin, end) in _cuts(layout, arena, span, mine, pieces):
                bucket_of[index] = len(buckets)
                buckets.append(Bucket(arena=arena, begin=begin, end=end))
                is_late = span.parameter in late
                is_gated = not is_late and profile.first_use_us[span.parameter] is not None
                generations.append(
                    Generation(bucket=bucket_of[index], apply_step=int(is_late), gated=is_gated)
                )
    backward, forward = [], []
    for index, piece in enumerate(pieces):
        bucket = bucket_of.get(index)
        if bucket is None:
            continue
        if piece.forward and (generations[bucket].gated or generations[bucket].delay):
            forward.append(Task(generation=bucket, step=1, stage="forward"))
        else:
            backward.append(Task(generation=bucket))
    return Plan(
        policy=policy,
        buffers=max(buffers_needed(generations, 1), default=1),
        links=(link,),
        arenas=layout.arenas,
        slots=layout.slots,
        buckets=tuple(buckets),
        generations=tuple(generations),
        tasks=(*backward, *forward),
    )


def _cuts(
    layout: Layout, arena: int, span: Span, own: Sequence[int], pieces: Sequence[Piece]
) -> Iterable[tuple[int, tuple[int, int]]]:
    """(piece, its range) of one gradient, in the order in which they leave."""
    unit = ALIGN_BYTES // layout.item_bytes(arena)
    begin = span.begin
    for place, index in enumerate(own):
        left = span.end - begin
        if not left:
            return
        units = max(1, pieces[index].bytes // ALIGN_BYTES)
        size = left if place + 1 == len(own) else min(left, units * unit)
        yield index, (begin, begin + size)
        begin += size


def by_priority(
    request: Request, measured: LinkProfile, piece_bytes: int, link: Link
) -> tuple[Piece, ...]:
    """Even pieces through a queue: what forward needs first leaves first, as credit allows."""
    profile = request.profile
    in_flight = min(link.credit_messages, link.credit_bytes / piece_bytes or math.inf)
    cost = measured.cost.with_in_flight(in_flight)
    owners, messages = [], []
    for index, size_bytes in enumerate(wire_bytes(request)):
        ready_us, priority = profile.ready_in_backward_us(index), need_us(profile, index)
        for part_bytes in even_pieces(size_bytes, piece_bytes):
            owners.append(index)
            messages.append(QueuedMessage(part_bytes, ready_us, priority))
    return tuple(
        Piece(
            parameter=owners[departure.message],
            bytes=messages[departure.message].bytes,
            forward=departure.leaves_us > profile.backward_us,
        )
        for departure in departures(messages, link, cost)
    )


def horovod_link(credit_bytes: int = 0, credit_messages: int = 0) -> Link:
    """In the order of the plan; messages that wait side by side stay apart, so that there is a
    limit to those in flight whatever the credit."""
    return Link(
        name=HOROVOD_LINK,
        credit_bytes=credit_bytes,
        credit_messages=min(credit_messages or MOST_UNFUSED, MOST_UNFUSED),
        fusion=False,
    )
