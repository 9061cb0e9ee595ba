"""The Plan: what travels when, over which link, and when it is applied. Data, equal on all ranks.

A plan is cyclic with a period of K steps. Inside it steps are numbered relative to the cycle:
0 .. K-1 for the last gradient that a generation carries. Its first one may lie before step 0, in
the cycle before; windows and apply steps may lie beyond K-1 and then fall into the next cycle.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from deft_horovod.base.record import Count, Flag, Index, Microseconds, Name, Part, Record
from deft_horovod.base.wire_format import EXACT, SECOND_STAGE_BYTES, WireFormat
from deft_horovod.plan.rules import check
from deft_horovod.plan.text import describe, difference

Op = Literal["all_reduce", "reduce_scatter", "all_gather", "broadcast"]
Stage = Literal["forward", "backward"]
Step = Annotated[int, Field(strict=True, ge=0, le=65_535)]
FirstStep = Annotated[int, Field(strict=True, ge=-4095, le=4095)]


class Link(Part):
    """A path over which messages travel. A credit of 0 is unlimited."""

    name: Name
    credit_bytes: Count = 0
    credit_messages: Count = 0
    # True: messages leave in the order of the plan. False: as they become ready, which is safe
    # only without a limit: two ranks that pick different messages would wait for each other.
    plan_order: Flag = True
    # False: messages that wait side by side are not fused by Horovod, so that each arrives as soon
    # as its own bytes have. True where only the last one matters.
    fusion: Flag = True


class Arena(Part):
    """One flat buffer; there is one for each (dtype, wire dtype, device)."""

    dtype: Name
    wire: Name
    device: Name
    elements: Count


class Slot(Part):
    """Where one parameter's gradient lives in its arena: a header of 16 bytes, then its data.

    Element 0 of the header says whether a gradient was there, element 1 asks for a new plan.
    """

    name: Name
    arena: Index
    begin: Count
    end: Count
    # Its values travel as they are, whatever the format of its buckets.
    exact: Flag = False


class Bucket(Part):
    """A contiguous range of an arena: one message."""

    arena: Index
    begin: Count
    end: Count
    # Of its values. Headers, and slots that are exact, travel as they are.
    format: WireFormat = EXACT


class Generation(Part):
    """The gradients of the steps first_step .. last_step of one bucket, summed.

    At most one period of them. In the very first cycle those before step 0 do not exist.
    Applied at the end of apply_step; when gated, before the first use of its parameters in the
    forward that follows.
    """

    bucket: Index
    first_step: FirstStep = 0
    last_step: Step = 0
    apply_step: Step = 0
    gated: Flag = False

    @property
    def delay(self) -> int:
        """Steps from its last gradient to its update."""
        return self.apply_step - self.last_step

    @property
    def merged(self) -> int:
        """Steps whose gradients it carries."""
        return self.last_step - self.first_step + 1


class Task(Part):
    """One message of a generation; it may leave from the beginning of its window on."""

    generation: Index
    op: Op = "all_reduce"
    link: Index = 0
    step: Step = 0
    stage: Stage = "backward"
    root: Index = 0


class Staleness(Part):
    """How much of the gradients arrives how late."""

    delay: Index  # steps
    merged: Annotated[Index, Field(ge=1)]  # steps whose gradients travel together
    gated: Flag = False
    bytes: Count  # of one step's gradients


class Prediction(Part):
    """What the solver expects of a plan, and how far it is from the best there could be."""

    compute_us: Microseconds  # of a step
    step_us: Microseconds  # mean over the period
    # No plan within the limits can make the step shorter.
    bound_us: Microseconds
    status: Name  # optimal, feasible, greedy
    staleness: tuple[Staleness, ...] = ()
    updates_per_step: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    profile: str = ""  # hash of the profile it was made from

    @property
    def exposed_us(self) -> float:
        """Communication that the step waits for."""
        return max(0.0, self.step_us - self.compute_us)

    @property
    def gap(self) -> float:
        """How much longer the step may be than necessary, as a share."""
        return self.step_us / self.bound_us - 1.0 if self.bound_us > 0.0 else 0.0


class Plan(Record):
    """Everything the executor needs to know. Slots are in the order of the parameters, tasks in
    the order in which they leave."""

    readable: ClassVar[tuple[int, ...]] = (1,)

    version: Literal[2] = 2
    policy: Name
    period: Annotated[Index, Field(ge=1, le=4096)] = 1
    # Copies of every arena; the generations of a bucket take them in turn.
    buffers: Annotated[Index, Field(ge=1)] = 1
    links: tuple[Link, ...] = ()
    arenas: tuple[Arena, ...] = ()
    slots: tuple[Slot, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    # What a second stage of an encoded message costs, as bytes that a rank sends.
    second_stage_bytes: Count = SECOND_STAGE_BYTES
    generations: tuple[Generation, ...] = ()
    tasks: tuple[Task, ...] = ()
    prediction: Prediction | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        check(self)
        return self

    def describe(self) -> str:
        """The plan as a person reads it."""
        return describe(self)

    def difference(self, other: Plan) -> str | None:
        """The first difference between this plan ('here') and another ('there')."""
        return difference(self, other)
