"""dcredit: windows of blocks, as wide as the time to the next gradient.

After D-Credit (IEEE TNSE 12(2), 2025, pp. 1080-1095), written from its rules. The published code
reduces the time that a window still has to fill by the blocks of a gradient after it has set their
number to 0, so such a window becomes too wide; here it is reduced by what was really taken. See
docs/guide/schedulers/dcredit.md for the rules and for what is our reading of them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.policies.pieces import horovod_link, plan_of_pieces
from deft_horovod.policies.published.tensor_blocks import Blocks, Sending, Tensors, block_sizes
from deft_horovod.policies.published.tuning import fastest
from deft_horovod.profile import LinkProfile


class DCredit(MeasuredPolicy):
    name = "dcredit"
    summary = "windows of blocks that fill the time to the next gradient (D-Credit)"

    def schedule(self, request: Request, link: LinkProfile) -> Plan:
        tensors = Tensors.of(request)
        sizes = block_sizes(request.config, tensors)
        return fastest(
            (self._plan(request, tensors, Blocks.of(size, link.cost)) for size in sizes),
            request.profile,
        )

    def _plan(self, request: Request, tensors: Tensors, blocks: Blocks) -> Plan:
        found = credit_windows(tensors, blocks)
        sent = [sending for window in found for sending in window.sent]
        # The credit of a plan does not change: any window has to fit in, so the widest decides.
        link = horovod_link(credit_bytes=max(window.bytes for window in found))
        pieces = tensors.pieces(sent, request.profile.backward_us)
        return plan_of_pieces(self.name, request, pieces, link)


@dataclass(frozen=True)
class CreditWindow:
    """What is in flight at once: blocks of one gradient or of several."""

    sent: tuple[Sending, ...]

    @property
    def bytes(self) -> int:
        return sum(sending.bytes for sending in self.sent)


def credit_windows(tensors: Tensors, blocks: Blocks) -> list[CreditWindow]:
    """Phase 1 greedily, up to the last gradient that becomes ready; phase 2 in the order of use.

    A window pays one start-up, however many messages it consists of. Empty ones are left out.
    """
    left = list(tensors.bytes)
    waiting: list[int] = []
    found: list[CreditWindow] = []
    free_us = 0.0
    for following in tensors.ready_order:
        ready_us = tensors.ready_us[following]
        if waiting and free_us < ready_us:
            fill_us = ready_us - free_us - blocks.alpha_us
            window = CreditWindow(tuple(_greedy(fill_us, free_us, waiting, left, blocks)))
            found.append(window)
            free_us += blocks.time_us(window.bytes)
        free_us = max(free_us, ready_us)
        heapq.heappush(waiting, following)
    return found + [CreditWindow((rest,)) for rest in blocks.leftovers(left, free_us)]


def _greedy(
    fill_us: float, starts_us: float, waiting: list[int], left: list[int], blocks: Blocks
) -> list[Sending]:
    """The blocks that fill the time, from the input side on. Taken from `waiting` and `left`."""
    sent = []
    while waiting:
        tensor = waiting[0]
        needed_bytes = blocks.needed_bytes(fill_us, left[tensor])
        size_bytes = left[tensor] if needed_bytes is None else needed_bytes
        sent.append(Sending(tensor, size_bytes, starts_us))
        left[tensor] -= size_bytes
        if not left[tensor]:
            heapq.heappop(waiting)
        if needed_bytes is not None:
            break
        fill_us -= blocks.beta_us_per_byte * size_bytes
    return sent
