"""usbyte: unequal groups of blocks that end when the next gradient becomes ready.

After US-Byte (Gao, Hu, Mashhadi, Jin, Xiao, Wu: "US-Byte: An Efficient Communication Framework for
Scheduling Unequal-Sized Tensor Blocks in Distributed Deep Learning", IEEE TPDS 35(1), 2024,
DOI 10.1109/TPDS.2023.3331372), algorithms 1 to 3, written from their rules. Units are bytes: the
published code fits the cost of a byte and multiplies it by elements. Forward times are measured:
those published were in proportion to the sizes of the gradients. The rules, and how we read them:
docs/guide/schedulers/usbyte.md.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request
from deft_horovod.policies.measured import MeasuredPolicy
from deft_horovod.policies.pieces import Piece, horovod_link, plan_of_pieces
from deft_horovod.policies.published.tensor_blocks import Blocks, Sending, Tensors, block_sizes
from deft_horovod.policies.published.tuning import fastest
from deft_horovod.profile import LinkProfile, Profile

# Gradients that the search for priorities walks through for one block size. Up to 500 gradients
# each of them is tried, as published (of models with up to 467); of more only the largest, which
# have most to gain from travelling as a whole.
_WALKED: Final = 250_000


class UsByte(MeasuredPolicy):
    name = "usbyte"
    summary = "groups of blocks that fill the time to the next gradient (US-Byte)"

    def schedule(self, request: Request, link: LinkProfile) -> Plan:
        tensors, config = Tensors.of(request), request.config
        limited = horovod_link(config.credit_bytes, config.credit_messages)
        sizes = block_sizes(config, tensors)
        cuts = (_pieces(request.profile, tensors, Blocks.of(size, link.cost)) for size in sizes)
        return fastest(
            (plan_of_pieces(self.name, request, pieces, limited) for pieces in cuts),
            request.profile,
        )


def _pieces(profile: Profile, tensors: Tensors, blocks: Blocks) -> tuple[Piece, ...]:
    search = Search(profile, tensors, blocks)
    return tensors.pieces(search.best().sent, profile.backward_us)


@dataclass(frozen=True)
class ReckonedStep:
    """One step, as the algorithm itself reckons it."""

    sent: tuple[Sending, ...]
    first_us: tuple[float, ...]  # when each gradient began to leave in backward; inf: it did not
    ends_us: tuple[float, ...]  # when all of it had arrived
    step_us: float


class Search:
    """Algorithm 3: which gradients are worth sending as a whole, past more urgent ones."""

    def __init__(self, profile: Profile, tensors: Tensors, blocks: Blocks) -> None:
        self._profile, self._tensors, self._blocks = profile, tensors, blocks
        uses = [profile.first_use_us[index] for index in tensors.parameter]
        self._ungated = uses.count(None)
        self._use_us = [min(use, profile.forward_us) for use in uses if use is not None]

    def best(self) -> ReckonedStep:
        tensors = self._tensors
        count = len(tensors.bytes)
        urgency = [float(tensor) for tensor in range(count)]
        best = self.schedule(urgency)
        floor_us = self._floor_us()
        tried = set(sorted(range(count), key=lambda i: -tensors.bytes[i])[: _WALKED // count])
        place = 0
        while place < count - 1 and best.step_us > floor_us:
            tensor = tensors.ready_order[place]
            following = place + 1
            last = self._overtaken(best, place) if tensor in tried else place
            # Just before the most urgent one of those that become ready meanwhile.
            passed = tensors.ready_order[place + 1 : last + 1]
            before = min((urgency[other] for other in passed), default=math.inf)
            if before < urgency[tensor]:
                trial = [*urgency]
                trial[tensor] = before - 0.5
                found = self.schedule(trial)
                if found.step_us < best.step_us:
                    best, urgency, following = found, trial, last
            place = following
        return best

    def schedule(self, urgency: Sequence[float]) -> ReckonedStep:
        """Algorithms 1 and 2: the smallest urgency leaves first in backward."""
        sent, left, free_us = _backward(self._tensors, self._blocks, urgency)
        sent += self._blocks.leftovers(left, free_us)
        first_us = [math.inf] * len(left)
        ends_us = [0.0] * len(left)
        for tensor, size_bytes, starts_us in sent:
            ends_us[tensor] = starts_us + self._blocks.time_us(size_bytes)
            if starts_us < free_us:
                first_us[tensor] = min(first_us[tensor], starts_us)
        return ReckonedStep(tuple(sent), tuple(first_us), tuple(ends_us), self._step_us(ends_us))

    def _step_us(self, ends_us: Sequence[float]) -> float:
        """Algorithm 2's recurrence, solved: forward is late by as much as its latest gradient is.

        What cannot be gated holds up the boundary, and so all of forward.
        """
        profile = self._profile
        boundary_us = max([profile.backward_us, *ends_us[: self._ungated]])
        gated = zip(ends_us[self._ungated :], self._use_us, strict=True)
        late_us = max((end_us - use_us for end_us, use_us in gated), default=0.0)
        return max(boundary_us + profile.optimizer_us, late_us) + profile.forward_us

    def _floor_us(self) -> float:
        """No priorities can make the step shorter: each gradient travels once it is ready."""
        ready = zip(self._tensors.ready_us, self._tensors.bytes, strict=True)
        return self._step_us([ready_us + self._blocks.time_us(size) for ready_us, size in ready])

    def _overtaken(self, schedule: ReckonedStep, place: int) -> int:
        """The last place of those that would become ready while the gradient travels as a whole,
        from when it began to leave on; its own place if none would."""
        tensors = self._tensors
        tensor = tensors.ready_order[place]
        first_us = schedule.first_us[tensor]
        if math.isinf(first_us):
            return place
        order, ready_us = tensors.ready_order, tensors.ready_us
        ends_us = first_us + self._blocks.time_us(tensors.bytes[tensor])
        return bisect_left(order, ends_us, lo=place + 1, key=lambda i: ready_us[i]) - 1


def _backward(
    tensors: Tensors, blocks: Blocks, urgency: Sequence[float]
) -> tuple[list[Sending], list[int], float]:
    """Algorithm 1: what leaves before the last gradient is ready, what is left of each gradient,
    and when the link is free.

    From one gradient that becomes ready to the next, the most urgent of those that wait leaves: as
    many blocks as fill the time until then, at least one. If that continues the message before
    it, one message, decided anew from where it began, replaces both.
    """
    left = list(tensors.bytes)
    waiting: list[tuple[float, int]] = []
    sent: list[Sending] = []
    free_us = 0.0
    for following in tensors.ready_order:
        ready_us = tensors.ready_us[following]
        while waiting and free_us < ready_us:
            tensor = waiting[0][1]
            replaced_bytes = 0
            if sent and sent[-1].tensor == tensor:
                _, replaced_bytes, free_us = sent.pop()
            available = left[tensor] + replaced_bytes
            needed = blocks.needed_bytes(ready_us - free_us - blocks.alpha_us, available)
            # Rounding must not send the same again.
            least = min(available, replaced_bytes + blocks.block_bytes)
            size_bytes = available if needed is None else max(needed, least)
            left[tensor] = available - size_bytes
            if not left[tensor]:
                heapq.heappop(waiting)
            sent.append(Sending(tensor, size_bytes, free_us))
            free_us += blocks.time_us(size_bytes)
        free_us = max(free_us, ready_us)
        heapq.heappush(waiting, (urgency[following], following))
    return sent, left, free_us
