"""Departure: the order in which messages leave through a priority queue with credit.

A deterministic simulation of the queue of ByteScheduler (Peng et al., SOSP 2019): messages that are
ready wait in a queue; the most urgent one leaves while there is credit; its bytes come back when
it has arrived. Messages that have left are not recalled: the link carries them one after another,
each for alpha + beta * bytes.

The queue runs once, when the plan is made, and not while training: the order of messages has to be
the same on all ranks.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from deft_horovod.plan import Link
from deft_horovod.profile import LinkCost


@dataclass(frozen=True)
class QueuedMessage:
    bytes: int
    ready_us: float  # since the backward stage began
    priority: float  # the smallest leaves first; ties by index


@dataclass(frozen=True)
class QueuedDeparture:
    message: int  # index into the input
    leaves_us: float
    arrives_us: float


def departures(
    messages: Sequence[QueuedMessage], link: Link, cost: LinkCost
) -> tuple[QueuedDeparture, ...]:
    """When each message leaves, in the order in which they do."""
    arrivals = sorted(range(len(messages)), key=lambda i: (messages[i].ready_us, i))
    waiting: list[tuple[float, int]] = []
    in_flight: deque[QueuedDeparture] = deque()
    done: list[QueuedDeparture] = []
    now = link_free = 0.0
    flying_bytes = 0
    following = 0  # position in `arrivals`
    while len(done) < len(messages):
        while in_flight and in_flight[0].arrives_us <= now:
            flying_bytes -= messages[in_flight.popleft().message].bytes
        while following < len(arrivals) and messages[arrivals[following]].ready_us <= now:
            index = arrivals[following]
            heapq.heappush(waiting, (messages[index].priority, index))
            following += 1
        while waiting and _has_credit(
            link, flying_bytes, len(in_flight), messages[waiting[0][1]].bytes
        ):
            _, index = heapq.heappop(waiting)
            link_free = max(now, link_free) + cost.time_us(messages[index].bytes)
            departure = QueuedDeparture(index, now, link_free)
            in_flight.append(departure)
            done.append(departure)
            flying_bytes += messages[index].bytes
        now = min(
            in_flight[0].arrives_us if in_flight else math.inf,
            messages[arrivals[following]].ready_us if following < len(arrivals) else math.inf,
        )
    return tuple(done)


def _has_credit(link: Link, flying_bytes: int, flying: int, next_bytes: int) -> bool:
    """As in the executor: a message larger than the whole credit travels alone."""
    if link.credit_messages and flying >= link.credit_messages:
        return False
    return not link.credit_bytes or not flying or flying_bytes + next_bytes <= link.credit_bytes
