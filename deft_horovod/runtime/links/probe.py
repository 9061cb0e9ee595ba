"""Measures what links cost, with messages of scratch memory that really travel.

Messages go as a plan would send them: a few in flight, the same names again and again, negotiation
and Horovod's cycle included. The time of a message is that of a run of equal messages divided by
their number. All ranks send the same messages in the same order; which ones, the lowest rank
decides from a first look at the link, so that a slow link takes no longer than a fast one. Training
waits meanwhile, so it ends as soon as the messages have said the same twice.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Final

from deft_horovod.base.record import Microseconds, Part, Record
from deft_horovod.plan import Op
from deft_horovod.profile import MEASURED_IN_FLIGHT, LinkCost, LinkProfile, LinkSample
from deft_horovod.profile.link_cost import fit_samples, residual
from deft_horovod.profile.probe_plan import SMALLEST_BYTES, ProbePlan, probe_plan
from deft_horovod.runtime.links.message_stream import Allowance, MessageRunner, MessageStream
from deft_horovod.runtime.ranks.agreement import Agreement

_LOG: Final = logging.getLogger("deft_horovod")
_US: Final = 1e6
_GROWTH: Final = 16
# Smaller messages are all start-up on any link that is good for training. If one takes somewhat
# longer than the smallest, the machine was busy, and a line through such times leads nowhere. A
# link that is so slow shows it by this factor.
_TELLING_BYTES: Final = 65_536
_TELLING_FACTOR: Final = 3.0
# Of the time for a link: no message of the first look shall take more than the first share; what is
# planned to be sent afterwards fits into the second, and the third is its end.
_LOOK_SHARE: Final = 0.05
PLANNED_SHARE: Final = 0.25
_MEASURE_SHARE: Final = 0.75
_ALIKE: Final = 0.1  # two rounds that differ by less say the same
_MOST_ROUNDS: Final = 11
_LOOKS: Final = 3
_ALONE_MESSAGES: Final = 4
_MOST_BUSY_ROUNDS: Final = 100

_Samples = tuple[LinkSample, ...]


class _Fit(Part):
    """One link: the times that count, and what they come to."""

    samples: _Samples
    cost: LinkCost


class _Measured(Record):
    """What one rank measured, link by link."""

    links: tuple[_Samples, ...]
    cycles_us: tuple[Microseconds, ...] = ()


class _Agreed(Record):
    """What holds for all ranks, link by link."""

    links: tuple[_Fit, ...]


def probe_links(
    agreement: Agreement,
    links: Mapping[str, MessageRunner],
    prefix: str,
    allowance: Allowance,
    halves_of: str | None = None,
) -> tuple[LinkProfile, ...]:
    """The cost of every link, the same on all ranks.

    All ranks call it together, while no other message is on its way; `prefix` begins the names of
    the messages. It takes `allowance.budget_s` at most for each link, and as much again for all at
    once if there are several. `halves_of`: the link whose reduce-scatters and all-gathers are
    measured too, for as long as all-reduces.
    """
    if agreement.deciding:
        _LOG.info("measuring links (%s), up to %g s each", ", ".join(links), allowance.budget_s)
    streams = [MessageStream(link, f"{prefix}.{name}", allowance) for name, link in links.items()]
    plans, alone, cycles_us = [], [], []
    for stream in streams:
        plans.append(_first_look(agreement, stream, allowance))
        alone.append(measure(agreement, stream, plans[-1], allowance))
        cycles_us.append(_cycle_us(stream))
    fits = agree(agreement, alone, cycles_us)
    busy: Sequence[_Fit | None] = [None] * len(fits)
    if len(fits) > 1:
        rounds = _busy_rounds(plans, [fit.cost for fit in fits], allowance)
        busy = agree(agreement, _all_at_once(streams, plans, rounds))
    halves: dict[str, tuple[LinkCost, LinkCost]] = {}
    if halves_of is not None:
        plan = plans[list(links).index(halves_of)]
        halves[halves_of] = _halves(agreement, links[halves_of], prefix, plan, allowance)
    profiles = tuple(
        LinkProfile(
            name=name,
            cost=fit.cost,
            busy_cost=None if beside is None else beside.cost,
            scatter_cost=halves[name][0] if name in halves else None,
            gather_cost=halves[name][1] if name in halves else None,
            samples=fit.samples,
            residual=residual(fit.samples, fit.cost),
        )
        for name, fit, beside in zip(links, fits, busy, strict=True)
    )
    if agreement.deciding:
        for profile in profiles:
            _LOG.info("%s", describe(profile))
    return profiles


def describe(profile: LinkProfile) -> str:
    """One line for people."""
    cost = profile.cost
    rate = f" + {1 / cost.beta_us_per_byte:.4g} MB/s" if cost.beta_us_per_byte > 0 else ""
    largest_bytes = max((sample.size_bytes for sample in profile.samples), default=0)
    return (
        f"link '{profile.name}': {cost.alpha_us:.0f} us a message{rate} ({len(profile.samples)} "
        f"sizes up to {largest_bytes} bytes, {profile.residual:.0%} off the line)"
    )


def _cycle_us(stream: MessageStream) -> float:
    """What a message takes that is nothing but a start-up, one after the other."""
    return median(stream.run_us(SMALLEST_BYTES, _ALONE_MESSAGES, alone=True) for _ in range(_LOOKS))


def _halves(
    agreement: Agreement, link: MessageRunner, prefix: str, plan: ProbePlan, allowance: Allowance
) -> tuple[LinkCost, LinkCost]:
    """Of a reduce-scatter and of an all-gather, by messages of the sizes of all-reduces."""
    ops: tuple[Op, Op] = ("reduce_scatter", "all_gather")
    streams = [MessageStream(link, f"{prefix}.{op}", allowance, op) for op in ops]
    scatter, gather = agree(
        agreement, [measure(agreement, stream, plan, allowance) for stream in streams]
    )
    return scatter.cost, gather.cost


def _first_look(agreement: Agreement, stream: MessageStream, allowance: Allowance) -> ProbePlan:
    """Growing messages, one at a time, until the next would take long; then what to send is decided
    for sizes that are not far from these."""
    samples: list[LinkSample] = []
    size_bytes = SMALLEST_BYTES
    go_on = True
    while go_on:
        time_us, go_on = _look(agreement, stream, size_bytes, samples, allowance)
        samples.append(LinkSample(size_bytes=size_bytes, time_us=time_us))
        size_bytes *= _GROWTH
    text = None
    rough = fit_samples(samples)
    if agreement.deciding and rough is not None:
        largest_bytes = min(allowance.largest_bytes, size_bytes)
        text = probe_plan(rough, largest_bytes, allowance.budget_s * PLANNED_SHARE * _US).to_json()
    return ProbePlan.from_json(agreement.share(text))


def _look(
    agreement: Agreement,
    stream: MessageStream,
    size_bytes: int,
    before: Sequence[LinkSample],
    allowance: Allowance,
) -> tuple[float, bool]:
    """The time of a message, and whether the next larger one is fast enough: all that this one took
    longer than the one before is bytes. Of a few messages the fastest counts, as any of them may
    have had to wait for something else; nothing is slow before it was slow several times, unless
    none is larger."""
    stream.reserve(size_bytes)
    stream.run_us(size_bytes, 1)
    time_us = math.inf
    for _ in range(_LOOKS):
        time_us = min(time_us, stream.run_us(size_bytes, 1), stream.run_us(size_bytes, 1))
        if size_bytes * _GROWTH > allowance.largest_bytes:
            break
        next_us = time_us + _of_bytes_us(size_bytes, time_us, before) * _GROWTH
        if _decided(agreement, next_us <= allowance.budget_s * _LOOK_SHARE * _US):
            return time_us, True
    return time_us, False


def _of_bytes_us(size_bytes: int, time_us: float, before: Sequence[LinkSample]) -> float:
    """How much of the time of a message its bytes take."""
    if not before:
        return 0.0
    tells = size_bytes >= _TELLING_BYTES or time_us > _TELLING_FACTOR * before[0].time_us
    return max(0.0, time_us - before[-1].time_us) if tells else 0.0


def measure(
    agreement: Agreement, stream: MessageStream, plan: ProbePlan, allowance: Allowance
) -> _Samples:
    """The medians of rounds over the sizes, until two in a row say the same or the time is over."""
    stream.reserve(max(plan.sizes_bytes))
    ends_s = time.perf_counter() + allowance.budget_s * _MEASURE_SHARE
    for size_bytes in plan.sizes_bytes:
        stream.run_us(size_bytes, min(_messages(plan, size_bytes), allowance.in_flight))
    rounds: list[_Samples] = []
    before = None
    for _ in range(_MOST_ROUNDS):
        rounds.append(_round(stream, plan))
        now = fit_samples(rounds[-1])
        ended = time.perf_counter() >= ends_s or _alike(before, now, plan)
        if _decided(agreement, ended):
            break
        before = now
    return _of_each_size(median, rounds)


def _alike(one: LinkCost | None, other: LinkCost | None, plan: ProbePlan) -> bool:
    """Whether two lines say the same of the smallest and of the largest message."""
    if one is None or other is None:
        return False
    ends_bytes = plan.sizes_bytes[0], plan.sizes_bytes[-1]
    pairs = ((one.time_us(size), other.time_us(size)) for size in ends_bytes)
    return all(max(pair) <= (1.0 + _ALIKE) * min(pair) for pair in pairs)


def _all_at_once(
    streams: Sequence[MessageStream], plans: Sequence[ProbePlan], rounds: Sequence[int]
) -> list[_Samples]:
    """Every link goes through its rounds while the others do."""

    def repeat(stream: MessageStream, plan: ProbePlan, count: int) -> _Samples:
        return _of_each_size(median, [_round(stream, plan) for _ in range(count)])

    with ThreadPoolExecutor(len(streams)) as threads:
        running = [
            threads.submit(repeat, *work) for work in zip(streams, plans, rounds, strict=True)
        ]
        try:
            return [run.result() for run in running]
        except BaseException:
            for stream in streams:
                stream.stop()
            raise


def _round(stream: MessageStream, plan: ProbePlan) -> _Samples:
    return tuple(
        LinkSample(size_bytes=size, time_us=stream.run_us(size, _messages(plan, size)))
        for size in plan.sizes_bytes
    )


def _messages(plan: ProbePlan, size_bytes: int) -> int:
    """Small ones cost little, and in their time counts how many are in flight."""
    small = size_bytes <= plan.small_bytes
    return max(plan.messages, MEASURED_IN_FLIGHT) if small else plan.messages


def _busy_rounds(
    plans: Sequence[ProbePlan], costs: Sequence[LinkCost], allowance: Allowance
) -> list[int]:
    """How often each link goes through its sizes so that all are busy for equally long."""
    round_us = [plan.round_us(cost) for plan, cost in zip(plans, costs, strict=True)]
    planned_us = max(plan.rounds * us for plan, us in zip(plans, round_us, strict=True))
    longest_us = max(*round_us, min(planned_us, allowance.budget_s * _US))
    return [min(_MOST_BUSY_ROUNDS, max(1, round(longest_us / max(us, 1.0)))) for us in round_us]


def _of_each_size(which: Callable[[list[float]], float], many: Iterable[_Samples]) -> _Samples:
    """Of the times of each size the one that counts."""
    return tuple(
        LinkSample(size_bytes=same[0].size_bytes, time_us=which([s.time_us for s in same]))
        for same in zip(*many, strict=True)
    )


def _decided(agreement: Agreement, yes: bool) -> bool:
    """What the deciding rank says."""
    text = ("yes" if yes else "no") if agreement.deciding else None
    return agreement.share(text) == "yes"


def agree(
    agreement: Agreement, mine: Sequence[_Samples], cycles_us: Sequence[float] = ()
) -> tuple[_Fit, ...]:
    """From every rank's times the slowest, and the line through them, for each link."""
    told = _Measured(links=tuple(mine), cycles_us=tuple(cycles_us))
    texts = agreement.collect(told.to_json())
    text = None
    if agreement.deciding:
        everyone = [_Measured.from_json(other) for other in texts]
        fits = [_fit(samples) for samples in zip(*(one.links for one in everyone), strict=True)]
        of_ranks = zip(*(one.cycles_us for one in everyone), strict=True)
        for index, same_us in enumerate(of_ranks):
            cost = fits[index].cost.model_copy(update={"cycle_us": max(same_us)})
            fits[index] = fits[index].model_copy(update={"cost": cost})
        text = _Agreed(links=tuple(fits)).to_json()
    return _Agreed.from_json(agreement.share(text)).links


def _fit(of_ranks: Sequence[_Samples]) -> _Fit:
    slowest = _of_each_size(max, of_ranks)
    cost = fit_samples(slowest)
    return _Fit(samples=slowest, cost=cost or LinkCost(alpha_us=0.0, beta_us_per_byte=0.0))
