"""What was measured: when gradients become ready, when parameters are used, what a link costs.

Indices are positions of the optimizer's parameters; times are microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from deft_horovod.base.record import Count, Index, Microseconds, Name, Part, Record
from deft_horovod.base.wire_format import WireFormat
from deft_horovod.errors import PlanError, explain

HOROVOD_LINK: Final = "horovod"
# Messages in flight while a link is measured: as many as plans allow.
MEASURED_IN_FLIGHT: Final = 4
_MOST_BYTES: Final = 1 << 40  # where bytes cost nothing
_CLEAR: Final = 1.25  # times its share of a cycle, from which on a message's time is its own


class LinkCost(Part):
    """The time of one message: ``alpha + beta * bytes``, and what small ones take.

    Horovod looks for messages once in a cycle, so those in flight together share one, and none
    takes less than its share, however small. `alpha_us` was fitted to messages of which
    `MEASURED_IN_FLIGHT` were in flight; of those that took little more than their share then, it
    says nothing.
    """

    alpha_us: Microseconds
    beta_us_per_byte: Microseconds
    cycle_us: Microseconds = 0.0  # of a small message that travels alone; 0: not known
    in_flight: Annotated[float, Field(ge=1, allow_inf_nan=False)] = MEASURED_IN_FLIGHT

    def time_us(self, size_bytes: float) -> float:
        line_us = self.alpha_us + self.beta_us_per_byte * size_bytes
        share_us = self.cycle_us / MEASURED_IN_FLIGHT
        if line_us < share_us * _CLEAR:  # continuous there
            above_us = (line_us - share_us) * _CLEAR / (_CLEAR - 1.0)
            line_us = max(self.beta_us_per_byte * size_bytes, above_us)
        return max(line_us, self.cycle_us / self.in_flight)

    def start_up_bytes(self, ranks: int) -> int:
        """What each of so many ranks could send in the time that a message takes beyond its bytes:
        what it costs to send in two what could be sent in one."""
        if self.beta_us_per_byte <= 0.0:
            return _MOST_BYTES
        sent = 2.0 * (ranks - 1) / ranks  # of an all-reduce, for each of its bytes
        return int(min(_MOST_BYTES, sent * self.time_us(0.0) / self.beta_us_per_byte))

    def with_in_flight(self, messages: float) -> LinkCost:
        """The same link when so many messages may be in flight."""
        return self.model_copy(update={"in_flight": max(1.0, messages)})


class LinkSample(Part):
    """Messages of one size, as they were measured alone."""

    size_bytes: Count
    time_us: Microseconds  # median over the messages, the slowest rank counts


class FormatCost(Part):
    """What a link takes for an all-reduce whose values travel in a wire format, by the bytes that
    the values have as float32. Encoding and decoding are in it."""

    format: WireFormat
    cost: LinkCost
    # What the codec alone takes for each of these bytes, on one core of the slowest rank: of values
    # with their rest, and of a message. None: not measured.
    encode_us_per_byte: Microseconds | None = None
    decode_us_per_byte: Microseconds | None = None


class LinkProfile(Part):
    """What one link was measured to do, with `MEASURED_IN_FLIGHT` messages in flight."""

    name: Name
    cost: LinkCost
    # While all other links were busy; None: there is no other.
    busy_cost: LinkCost | None = None
    # Of a reduce-scatter, and of an all-gather, of a buffer of so many bytes. None: not measured.
    scatter_cost: LinkCost | None = None
    gather_cost: LinkCost | None = None
    formats: tuple[FormatCost, ...] = ()  # those that were measured
    samples: tuple[LinkSample, ...] = ()
    # Root mean square of (measured - fitted) / fitted over the samples.
    residual: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

    def cost_in(self, wire_format: WireFormat) -> LinkCost | None:
        """Of a format; None: it was not measured."""
        return next((one.cost for one in self.formats if one.format == wire_format), None)


class ModuleProfile(Part):
    """A module that owns parameters."""

    name: str
    type: Name
    forward_us: Microseconds  # median of its calls of a step, added up
    parameters: tuple[Index, ...]


class Tensor(Part):
    """A parameter as the profile names it."""

    name: Name
    shape: tuple[Count, ...]
    dtype: Name


class Spread(Part):
    """How one stage differs between steps and ranks."""

    stage: Name  # forward, backward, optimizer, step
    p10_us: Microseconds
    p90_us: Microseconds
    slowest_rank: Index
    fastest_rank_us: Microseconds


class Profile(Record):
    """One training step as seen on this cluster: the largest of all ranks' medians."""

    readable: ClassVar[tuple[int, ...]] = (2,)

    version: Literal[3] = 3
    # A permutation of the parameters; those that never became ready come last.
    ready_order: tuple[Index, ...]
    # Since the backward stage began; for those that never became ready, its end.
    ready_us: tuple[Microseconds, ...]
    # Since the forward stage began; None: no module was seen that owns it, so nothing can gate it.
    first_use_us: tuple[Microseconds | None, ...]
    forward_us: Microseconds
    backward_us: Microseconds
    optimizer_us: Microseconds = 0.0
    step_us: Microseconds = 0.0  # with communication, as it was while measuring
    steps: Index = 0  # that were measured; 0: nothing but a first impression
    size: Index = 1  # ranks
    links: tuple[LinkProfile, ...] = ()  # the first one is Horovod's
    tensors: tuple[Tensor, ...] = ()
    modules: tuple[ModuleProfile, ...] = ()
    spreads: tuple[Spread, ...] = ()

    @property
    def link(self) -> LinkCost | None:
        """What the first link costs, once it was measured."""
        return self.links[0].cost if self.links else None

    @property
    def compute_us(self) -> float:
        """What a step would take without communication."""
        return self.forward_us + self.backward_us + self.optimizer_us

    def ready_in_backward_us(self, parameter: int) -> float:
        """Since backward began, in which all gradients are ready whatever the medians say."""
        return min(self.ready_us[parameter], self.backward_us)

    def by_ready_time(self) -> list[int]:
        """By the measured times, which are medians, so that ties and near misses can contradict
        the order in which gradients came in the step that was looked at."""
        place = {index: at for at, index in enumerate(self.ready_order)}
        return sorted(place, key=lambda index: (self.ready_in_backward_us(index), place[index]))

    @model_validator(mode="after")
    def _check(self) -> Self:
        count = len(self.ready_order)
        if sorted(self.ready_order) != list(range(count)):
            raise PlanError(
                explain(
                    "profile rule 'ready_order': it is not a permutation of the parameters",
                    observed=list(self.ready_order)[:20],
                    expected=f"each of 0 .. {count - 1} once",
                )
            )
        for field, values in (("ready_us", self.ready_us), ("first_use_us", self.first_use_us)):
            if len(values) != count:
                raise PlanError(
                    explain(
                        f"profile rule '{field}': it needs one entry per parameter",
                        observed=f"{len(values)} entries",
                        expected=f"{count}, as in ready_order",
                    )
                )
        return self

    def select(self, kept: Sequence[int]) -> Self:
        """The same step seen from some of its parameters, in the given order."""
        place = {index: number for number, index in enumerate(kept)}
        modules = tuple(
            module.model_copy(update={"parameters": inside})
            for module in self.modules
            if (inside := tuple(place[i] for i in module.parameters if i in place))
        )
        return self.model_copy(
            update={
                "ready_order": tuple(place[i] for i in self.ready_order if i in place),
                "ready_us": tuple(self.ready_us[i] for i in kept),
                "first_use_us": tuple(self.first_use_us[i] for i in kept),
                "tensors": tuple(self.tensors[i] for i in kept) if self.tensors else (),
                "modules": modules,
            }
        )

    @staticmethod
    def link_of(cost: LinkCost | None) -> tuple[LinkProfile, ...]:
        """Horovod's link alone, where nothing but a fit of its cost is known."""
        return () if cost is None else (LinkProfile(name=HOROVOD_LINK, cost=cost),)

    @classmethod
    def assumed(cls, parameters: int) -> Self:
        """What is taken for granted before anything was measured.

        Parameters are used in the order in which they are registered, their gradients become ready
        in the reverse order, evenly spaced, and backward takes twice as long as forward.
        """
        return cls(
            ready_order=tuple(reversed(range(parameters))),
            ready_us=tuple(2.0 * (parameters - i) for i in range(parameters)),
            first_use_us=tuple(float(i) for i in range(parameters)),
            forward_us=float(parameters),
            backward_us=2.0 * parameters,
        )
