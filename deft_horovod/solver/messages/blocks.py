"""Blocks: what is planned as one. A big parameter cut into several messages, or small ones fused.

All messages of a parameter are applied at one moment, so a plan decides for a block: one parameter
cut into several buckets, or several parameters in one bucket, never both.

How large a message is (its time on the first link is ``alpha + beta * bytes``):

1. Window rule: no message takes longer than `window_share` of the smaller of the two windows
   (forward, backward), so that windows can be filled and an urgent message soon gets its turn.
2. Alpha rule: the start-up time stays under `alpha_share` of each message's time, as far as there
   is enough to fuse.
3. Tail rule: what is fused takes at most half of the time that backward still lasts, since the
   last message is exposed in every synchronous plan. Where the link is behind anyway, it may take
   as long as the link is busy with messages before it, but is no more bytes than all that become
   ready after it. So sizes halve towards the end and are large before: sizes differ, the point of
   US-Byte (Gao et al., "US-Byte: An Efficient Communication Framework for Scheduling
   Unequal-Sized Tensor Blocks in Distributed Deep Learning", TPDS 2024).

Where they conflict the window rule and the tail rule win over the alpha rule, down to the size at
which half of a message's time is start-up: none is cut or closed smaller than that for their sake.
More than `MAX_BUCKETS` messages are never made (and one for each kind of parameters), whatever the
rules say; no message is larger than what Horovod can count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from deft_horovod.base.parameter import Parameter
from deft_horovod.base.wire_format import WireFormat
from deft_horovod.plan import Bucket
from deft_horovod.plan.formats import may_shrink
from deft_horovod.plan.rules import ALIGN_BYTES
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.solver.messages.layout import Layout, lay_out, slot_bytes
from deft_horovod.solver.messages.partition import even_ends

ALPHA_SHARE: Final = 0.05
WINDOW_SHARE: Final = 1 / 3
MAX_BUCKETS: Final = 256


class Shares(NamedTuple):
    """What a message may be: of its time start-up, and of a window the message."""

    alpha_share: float
    window_share: float


DEFAULT_SHARES: Final = Shares(ALPHA_SHARE, WINDOW_SHARE)
FINE_SHARES: Final = Shares(0.25, 0.15)  # fresher plans, where there is link time to spare
COARSE_SHARES: Final = Shares(0.02, 0.7)  # less start-up, where links are overcharged

# Of a network of 1 GB/s; only the ratio of the two matters.
ASSUMED_COST: Final = LinkCost(alpha_us=500.0, beta_us_per_byte=0.001)

_MOST_ALPHA: Final = 0.5
_TAIL_SHARE: Final = 0.5
# Messages finer than this share of what the window rule allows gain nothing.
_FINE_SHARE: Final = 1 / 3
_LARGEST_BYTES: Final = 2 * 1024**3 - ALIGN_BYTES


@dataclass(frozen=True)
class Block:
    """Parameters that are planned as one, and the buckets that carry them."""

    parameters: tuple[int, ...]
    buckets: tuple[int, ...]
    ready_us: float  # the last gradient, since backward began, at most the whole backward
    need_us: float | None  # the first use, since forward began; None: cannot be gated


@dataclass(frozen=True)
class Blocking:
    layout: Layout
    buckets: tuple[Bucket, ...]  # in the order of the blocks
    blocks: tuple[Block, ...]  # in the order in which they are ready

    def encoded(self, formats: Sequence[WireFormat]) -> Blocking:
        """The same messages, the buckets of each block in its format."""
        buckets = list(self.buckets)
        for block, wire_format in zip(self.blocks, formats, strict=True):
            for index in block.buckets:
                if buckets[index].format != wire_format:
                    buckets[index] = buckets[index].model_copy(update={"format": wire_format})
        return replace(self, buckets=tuple(buckets))

    def may_shrink(self, block: Block) -> bool:
        """Whether encoding it would save anything worth it."""
        slots = [self.layout.slots[index] for index in block.parameters]
        return may_shrink(self.layout.arenas[slots[0].arena].wire, slots)

    def bucket_bytes(self, index: int) -> int:
        bucket = self.buckets[index]
        return (bucket.end - bucket.begin) * self.layout.item_bytes(bucket.arena)


@dataclass(frozen=True)
class Sizes:
    """What the rules say for one model on one link."""

    cost: LinkCost
    timed: bool  # the cost was measured, so it can be compared with windows
    least_bytes: int  # neither the window rule nor the tail rule asks for less
    aim_bytes: int  # a message that has reached it is closed
    cap_bytes: int  # none is larger

    def limit_bytes(self, left_us: float, left_bytes: int, busy_us: float) -> int:
        """The most that may be fused when backward still lasts so long, as many bytes are to come,
        and the link is busy for so long."""
        if not self.timed:
            return min(self.cap_bytes, max(self.least_bytes, left_bytes))
        hidden = _bytes_within(self.cost, _TAIL_SHARE * left_us)
        behind = min(left_bytes, _bytes_within(self.cost, busy_us))
        return int(min(self.cap_bytes, max(self.least_bytes, hidden, behind)))

    def pieces(self, size_bytes: int) -> int:
        """Of one parameter: as few as the cap allows, more while none is below what is aimed at."""
        return max(-(-size_bytes // self.cap_bytes), size_bytes // self.aim_bytes)


def sizes(total_bytes: int, profile: Profile, *, alpha_share: float, window_share: float) -> Sizes:
    """The sizes that follow from the rules. Without a measured link windows say nothing."""
    cost = profile.link or ASSUMED_COST
    grain = 2 * total_bytes / MAX_BUCKETS
    least = max(_bytes_above(cost, _MOST_ALPHA), grain)
    amortised = _bytes_above(cost, alpha_share)
    window, fine = math.inf, 0.0
    if profile.link is not None:
        shortest_us = min(profile.forward_us, profile.backward_us)
        window = _bytes_within(cost, window_share * shortest_us)
        fine = _bytes_within(cost, _FINE_SHARE * window_share * shortest_us)
    cap = _whole(max(window, least))
    return Sizes(
        cost=cost,
        timed=profile.link is not None,
        least_bytes=min(_whole(least), cap),
        aim_bytes=min(_whole(max(amortised, fine, least)), cap),
        cap_bytes=cap,
    )


def block_up(
    parameters: Sequence[Parameter],
    profile: Profile,
    *,
    alpha_share: float = ALPHA_SHARE,
    window_share: float = WINDOW_SHARE,
) -> Blocking:
    """Cuts and fuses. Parameters that can be gated and those that cannot share no block."""
    total = sum(slot_bytes(parameter) for parameter in parameters)
    rules = sizes(total, profile, alpha_share=alpha_share, window_share=window_share)
    groups = _fused(parameters, profile, rules)
    ready = [max(profile.ready_in_backward_us(i) for i in group) for group in groups]
    order = sorted(range(len(groups)), key=lambda i: (ready[i], i))
    layout = lay_out(parameters, [index for number in order for index in groups[number]])
    spans = {span.parameter: span for members in layout.spans for span in members}
    buckets: list[Bucket] = []
    blocks: list[Block] = []
    for number in order:
        group = groups[number]
        arena = layout.slots[group[0]].arena
        begin, ends = spans[group[0]].begin, [spans[group[-1]].end]
        if len(group) == 1:
            pieces = rules.pieces(slot_bytes(parameters[group[0]]))
            ends = even_ends(spans[group[0]], ALIGN_BYTES // layout.item_bytes(arena), pieces)
        first = len(buckets)
        for end in ends:
            buckets.append(Bucket(arena=arena, begin=begin, end=end))
            begin = end
        needs = [profile.first_use_us[i] for i in group]
        known = [need for need in needs if need is not None]
        blocks.append(
            Block(
                parameters=group,
                buckets=tuple(range(first, len(buckets))),
                ready_us=ready[number],
                need_us=min(known) if known else None,
            )
        )
    return Blocking(layout, tuple(buckets), tuple(blocks))


def distinct_blockings(
    parameters: Sequence[Parameter], profile: Profile, shares: Sequence[Shares]
) -> tuple[Blocking, ...]:
    """Of messages of these sizes, in this order; two that come out alike are one."""
    found: list[Blocking] = []
    for alpha_share, window_share in shares:
        blocking = block_up(parameters, profile, alpha_share=alpha_share, window_share=window_share)
        if blocking not in found:
            found.append(blocking)
    return tuple(found)


@dataclass
class _Group:
    """Parameters that are being fused."""

    members: tuple[int, ...] = ()
    bytes: int = 0


class _Fusion:
    """Gradients in the order in which they come. One block is filled at a time for each kind of
    parameters; where the next one does not fit, the larger of the two leaves and the other one is
    filled on."""

    def __init__(self, rules: Sizes, left_bytes: int) -> None:
        self.blocks: list[tuple[int, ...]] = []
        self._rules = rules
        self._left_bytes = left_bytes  # that have not come yet
        self._filling: dict[tuple[object, ...], _Group] = {}
        self._free_us = 0.0  # of the link, if every block leaves at once

    def add(
        self, index: int, kind: tuple[object, ...], size_bytes: int, times_us: tuple[float, float]
    ) -> None:
        """`times_us`: when it is ready, and for how long backward goes on then."""
        ready_us, left_us = times_us
        group = self._filling.setdefault(kind, _Group())
        self._left_bytes -= size_bytes
        busy_us = max(0.0, self._free_us - ready_us)
        limit = self._rules.limit_bytes(left_us, self._left_bytes, busy_us)
        if group.bytes + size_bytes > limit and size_bytes >= group.bytes:
            self._close(_Group((index,), size_bytes), ready_us)
            return
        if group.bytes + size_bytes > limit:
            self._close(group, ready_us)
            group = self._filling[kind] = _Group()
        group.members += (index,)
        group.bytes += size_bytes
        if group.bytes >= min(self._rules.aim_bytes, limit):
            self._close(group, ready_us)
            del self._filling[kind]

    def finish(self) -> list[tuple[int, ...]]:
        left = [group.members for group in self._filling.values() if group.members]
        return self.blocks + left

    def _close(self, group: _Group, now_us: float) -> None:
        self.blocks.append(group.members)
        cost = self._rules.cost
        pieces = self._rules.pieces(group.bytes) if len(group.members) == 1 else 1
        takes_us = cost.alpha_us * pieces + cost.beta_us_per_byte * group.bytes
        self._free_us = max(self._free_us, now_us) + takes_us


def _fused(
    parameters: Sequence[Parameter], profile: Profile, rules: Sizes
) -> list[tuple[int, ...]]:
    """Which parameters share a block."""
    fusion = _Fusion(rules, sum(slot_bytes(parameter) for parameter in parameters))
    for index in profile.by_ready_time():
        parameter = parameters[index]
        gateable = profile.first_use_us[index] is not None
        kind = (parameter.dtype, parameter.wire, parameter.device, gateable)
        ready_us = profile.ready_in_backward_us(index)
        times_us = (ready_us, profile.backward_us - ready_us)
        fusion.add(index, kind, slot_bytes(parameter), times_us)
    return fusion.finish()


def _bytes_above(cost: LinkCost, alpha_share: float) -> float:
    """From this size on start-up is at most such a share of a message's time."""
    if cost.alpha_us == 0.0:
        return 0.0
    if cost.beta_us_per_byte == 0.0 or alpha_share <= 0.0:
        return math.inf
    return cost.alpha_us * (1.0 / min(alpha_share, 1.0) - 1.0) / cost.beta_us_per_byte


def _bytes_within(cost: LinkCost, time_us: float) -> float:
    """Up to this size a message takes at most so long; below 0: none does."""
    if cost.beta_us_per_byte == 0.0:
        return math.inf if cost.alpha_us <= time_us else 0.0
    return (time_us - cost.alpha_us) / cost.beta_us_per_byte


def _whole(size_bytes: float) -> int:
    """At least one unit of alignment, at most what Horovod can count."""
    if size_bytes >= _LARGEST_BYTES:
        return _LARGEST_BYTES
    return max(ALIGN_BYTES, int(size_bytes) // ALIGN_BYTES * ALIGN_BYTES)
