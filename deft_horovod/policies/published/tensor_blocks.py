"""Gradients in blocks of one size: what US-Byte and D-Credit have in common.

Both number the gradients as forward uses them (0 is the first), cut each into blocks of one size
(the last one is smaller), send several blocks of a gradient as one message, and walk through
backward from one gradient that becomes ready to the next. What backward leaves behind leaves in the
next forward, what is left of each gradient as one message, in the order of use.

The published codes give block sizes in elements and the cost of the link, fitted in bytes, is
multiplied by them; here everything is in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deft_horovod.config import Config
from deft_horovod.plan.rules import ALIGN_BYTES
from deft_horovod.policies.base import Request
from deft_horovod.policies.pieces import Piece, use_order, wire_bytes
from deft_horovod.policies.published.tuning import piece_sizes_bytes
from deft_horovod.profile import LinkCost


class Sending(NamedTuple):
    """Blocks of one gradient that travel as one message."""

    tensor: int
    bytes: int
    starts_us: float  # since backward began


@dataclass(frozen=True)
class Tensors:
    """The gradients of a model, in the order in which forward uses them.

    Those without a known use are needed at the boundary, so they come first.
    """

    parameter: tuple[int, ...]
    bytes: tuple[int, ...]  # on the wire
    ready_us: tuple[float, ...]  # since backward began
    # As backward hands them over. At one moment: what is used last comes first, as in backward.
    ready_order: tuple[int, ...]

    @classmethod
    def of(cls, request: Request) -> Tensors:
        profile, sizes = request.profile, wire_bytes(request)
        order = use_order(profile)
        ready = tuple(profile.ready_in_backward_us(index) for index in order)
        return cls(
            parameter=tuple(order),
            bytes=tuple(sizes[index] for index in order),
            ready_us=ready,
            ready_order=tuple(sorted(range(len(order)), key=lambda i: (ready[i], -i))),
        )

    def pieces(self, sent: Sequence[Sending], backward_us: float) -> tuple[Piece, ...]:
        """Messages that begin once backward has ended leave in the next forward."""
        return tuple(
            Piece(self.parameter[tensor], size_bytes, forward=starts_us >= backward_us)
            for tensor, size_bytes, starts_us in sent
        )


@dataclass(frozen=True)
class Blocks:
    """Blocks of one size, and what they cost: k of them as one message take a + b * S * k."""

    block_bytes: int
    alpha_us: float
    beta_us_per_byte: float

    @classmethod
    def of(cls, block_bytes: int, cost: LinkCost) -> Blocks:
        aligned = max(ALIGN_BYTES, block_bytes // ALIGN_BYTES * ALIGN_BYTES)
        return cls(aligned, cost.alpha_us, cost.beta_us_per_byte)

    def time_us(self, size_bytes: int) -> float:
        return self.alpha_us + self.beta_us_per_byte * size_bytes

    def needed_bytes(self, time_us: float, left_bytes: int) -> int | None:
        """The fewest blocks that keep the link busy for so long, start-up not counted, but at least
        one; no more bytes than there are left. None: all that are left are too few."""
        if time_us <= 0.0:
            return min(left_bytes, self.block_bytes)
        if time_us > self.beta_us_per_byte * left_bytes:
            return None
        # The quotient of the smallest times is 0.
        count = max(1, math.ceil(time_us / (self.beta_us_per_byte * self.block_bytes)))
        return min(left_bytes, count * self.block_bytes)

    def leftovers(self, left_bytes: Sequence[int], free_us: float) -> list[Sending]:
        """What backward has left of each gradient, as one message each, in the order of use."""
        sent = []
        for tensor, size_bytes in enumerate(left_bytes):
            if size_bytes:
                sent.append(Sending(tensor, size_bytes, free_us))
                free_us += self.time_us(size_bytes)
        return sent


def block_sizes(config: Config, tensors: Tensors) -> list[int]:
    """Those to choose from."""
    return piece_sizes_bytes(tensors.bytes) if config.tune else [config.partition_bytes]
