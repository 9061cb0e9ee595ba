"""Problem: what is decided for every block, and within which limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from deft_horovod.base.period import LONGEST_PERIOD
from deft_horovod.base.wire_format import EXACT, WireFormat, error_of
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.solver.links import bytes_per_us, costs_in, costs_of
from deft_horovod.solver.messages.blocks import Blocking

# Share of the measured stage times that is planned with: messages do not preempt each other, and
# no step is exactly like the one that was measured.
MARGIN: Final = 0.97
# The same where updates are rare anyway, so little is lost by it: links have been seen some percent
# slower in training than when measured alone.
WIDE_MARGIN: Final = 0.93
_PICOSECOND_US: Final = 1e-6


@dataclass(frozen=True)
class Limits:
    """What the user allows."""

    max_delay: int  # steps that an update may come late
    max_merge: int  # steps whose gradients may travel as one sum
    late_share: float = 1.0  # of the bytes, which either may befall
    formats: tuple[WireFormat, ...] = ()  # in which values may travel, the least harmful first

    def __post_init__(self) -> None:
        for name in ("max_delay", "max_merge"):
            steps = getattr(self, name)
            if steps > LONGEST_PERIOD:
                raise ValueError(
                    f"{name} is {steps}; no plan is longer than {LONGEST_PERIOD} steps"
                )

    @property
    def late(self) -> bool:
        """Whether anything but exact synchronous training is allowed."""
        return (self.max_delay > 0 or self.max_merge > 1) and self.late_share > 0.0


@dataclass(frozen=True)
class Choice:
    """How a block travels. All its buckets share everything but the link."""

    merged: int = 1  # steps of a generation
    end_step: int = 0  # the last step of the first generation in the period, below `merged`
    delay: int = 0
    gated: bool = False
    links: tuple[int, ...] = ()  # of each bucket
    format: WireFormat = EXACT

    @property
    def harm(self) -> float:
        """The error of what is applied, relative to the gradient: its staleness, as if it turned
        completely in every step, and rounding."""
        return self.staleness + error_of(self.format)

    @property
    def staleness(self) -> float:
        """Steps from a gradient to its update, the mean over the gradients of a generation.

        A gate costs none: the update is there before anything uses the parameter.
        """
        return self.delay + (self.merged - 1) / 2

    def last_steps(self, period: int) -> range:
        """The steps of the period in which its generations are complete."""
        return range(self.end_step, period, self.merged)


BucketTimes = tuple[tuple[float, ...], ...]  # of each bucket on each link


@dataclass(frozen=True)
class Item:
    """A block, as far as planning goes."""

    ready_us: float  # since backward began
    need_us: float | None  # since forward began; None: it cannot be gated
    weight: float  # how much a step of staleness hurts; lexicographic, so only ratios count
    times_us: BucketTimes
    may_be_late: bool = True  # or merged
    # In each format in which it may travel, the least harmful first.
    encoded_us: Mapping[WireFormat, BucketTimes] = field(default_factory=dict)

    @property
    def formats(self) -> tuple[WireFormat, ...]:
        """In which it may travel apart from the exact one."""
        return tuple(self.encoded_us)

    def times_in(self, wire_format: WireFormat) -> BucketTimes:
        """Of each bucket on each link."""
        return self.times_us if wire_format == EXACT else self.encoded_us[wire_format]

    def load_us(self, links: Sequence[int], link: int, wire_format: WireFormat = EXACT) -> float:
        """What a generation costs one link, if its buckets travel on these."""
        pairs = zip(self.times_in(wire_format), links, strict=True)
        return sum(times[on] for times, on in pairs if on == link)

    @property
    def fastest_us(self) -> float:
        """What its buckets take at least, each on the link and in the format that suits it."""
        ways: tuple[BucketTimes, ...] = (self.times_us, *self.encoded_us.values())
        every: Iterable[BucketTimes] = zip(*ways, strict=True)
        return sum(min(min(times) for times in of_bucket) for of_bucket in every)


@dataclass(frozen=True)
class Problem:
    items: tuple[Item, ...]
    forward_us: float
    backward_us: float
    optimizer_us: float
    links: int
    limits: Limits
    margin: float = MARGIN

    @property
    def step_us(self) -> float:
        """Of compute."""
        return self.forward_us + self.backward_us + self.optimizer_us

    def least_load_us(self) -> float:
        """No step can do with less link time, if all links are shared perfectly: what everything
        takes when each message takes the link and format that are fastest for it and all merge."""
        fastest = sum(item.fastest_us for item in self.items)
        return fastest / (self.links * self.limits.max_merge)


def margin_of(profile: Profile, wire_bytes: float, limits: Limits) -> float:
    """The wider one where gradients have to be merged anyway and it does not make them wait."""
    rate = bytes_per_us(profile, range(len(profile.links)))
    share = wire_bytes / rate / max(profile.compute_us, 1e-12)
    return WIDE_MARGIN if MARGIN < share <= WIDE_MARGIN * limits.max_merge else MARGIN


def problem_of(
    blocking: Blocking,
    profile: Profile,
    limits: Limits,
    links: Sequence[int],
    weights: Sequence[float] | None = None,
    margin: float = MARGIN,
) -> Problem:
    """A step of staleness hurts in proportion to a block's bytes, unless `weights` say otherwise
    (one for each block)."""
    costs = costs_of(profile, links)
    encoded = {f: found for f in limits.formats if (found := costs_in(profile, links, f))}
    late = _late_blocks(blocking, limits.late_share)
    items = []
    for index, block in enumerate(blocking.blocks):
        sizes = [blocking.bucket_bytes(bucket) for bucket in block.buckets]
        need_us = block.need_us
        items.append(
            Item(
                ready_us=min(block.ready_us, profile.backward_us),
                need_us=None if need_us is None else min(need_us, profile.forward_us),
                weight=float(sum(sizes)) if weights is None else weights[index],
                times_us=tuple(tuple(cost.time_us(size) for cost in costs) for size in sizes),
                may_be_late=index in late,
                encoded_us=_encoded_us(sizes, encoded) if blocking.may_shrink(block) else {},
            )
        )
    return Problem(
        items=tuple(items),
        forward_us=_time(profile.forward_us),
        backward_us=_time(profile.backward_us),
        optimizer_us=_time(profile.optimizer_us),
        links=len(links),
        limits=limits,
        margin=margin,
    )


def _encoded_us(
    sizes: Sequence[int], encoded: Mapping[WireFormat, Sequence[LinkCost]]
) -> dict[WireFormat, BucketTimes]:
    """By format, of messages that have these sizes as float32."""
    return {
        one: tuple(tuple(cost.time_us(size) for cost in costs) for size in sizes)
        for one, costs in encoded.items()
    }


def _late_blocks(blocking: Blocking, share: float) -> set[int]:
    """Those that may be late: the ones that are ready last, whose messages are the hardest to hide,
    as far as the share of the bytes goes."""
    blocks = blocking.blocks
    if share >= 1.0:
        return set(range(len(blocks)))
    sizes = [sum(blocking.bucket_bytes(b) for b in block.buckets) for block in blocks]
    left = share * sum(sizes)
    found = set()
    for index in sorted(range(len(blocks)), key=lambda i: (-blocks[i].ready_us, i)):
        if sizes[index] <= left:
            found.add(index)
            left -= sizes[index]
    return found


def _time(stage_us: float) -> float:
    """Less than a picosecond is no time: one divides by it."""
    return stage_us if stage_us >= _PICOSECOND_US else 0.0
