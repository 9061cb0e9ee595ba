"""The buckets of a plan, told one by one: what each carries, how it is applied, when it rides."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deft_horovod.base.size import size_text
from deft_horovod.base.wire_format import EXACT, WireFormat
from deft_horovod.plan.contents import bucket_bytes, contents
from deft_horovod.plan.formats import message_bytes
from deft_horovod.plan.words import (
    carries_text,
    class_text,
    generation_class,
    layer_numbers,
    ride_text,
)

if TYPE_CHECKING:
    from deft_horovod.plan.plan import Generation, Plan


@dataclass(frozen=True)
class Fate:
    """What becomes of the gradients of some steps."""

    steps: str  # of the cycle
    applied: str
    rides: tuple[str, ...]  # each message

    @property
    def text(self) -> str:
        return f"{self.applied}, rides {', then '.join(self.rides)}"


@dataclass(frozen=True)
class BucketRow:
    """One bucket."""

    bucket: int
    bytes: int
    format: WireFormat
    message_bytes: int  # in that format
    carries: str
    fates: tuple[Fate, ...]  # by the step of the last gradient

    @property
    def size_text(self) -> str:
        """Its bytes, and those of its message where it is encoded."""
        whole = size_text(self.bytes)
        if self.format == EXACT:
            return whole
        return f"{whole} as {self.format} ({size_text(self.message_bytes)})"

    @property
    def alike(self) -> bool:
        """Whether all steps of the cycle have the same fate."""
        return len({fate.text for fate in self.fates}) == 1


def bucket_rows(plan: Plan) -> tuple[BucketRow, ...]:
    """All of them, in the order of their numbers."""
    numbers = layer_numbers(plan)
    members = contents(plan.slots, plan.buckets)
    fates = _fates(plan)
    parts = Counter(slot for inside in members for slot in inside)
    seen: Counter[int] = Counter()
    whole, sent = bucket_bytes(plan), message_bytes(plan)
    rows = []
    for bucket, inside in enumerate(members):
        what = carries_text(plan, inside, numbers)
        if len(inside) == 1 and parts[inside[0]] > 1:
            seen[inside[0]] += 1
            what += f" part {seen[inside[0]]} of {parts[inside[0]]}"
        wire_format = plan.buckets[bucket].format
        rows.append(
            BucketRow(bucket, whole[bucket], wire_format, sent[bucket], what, tuple(fates[bucket]))
        )
    return tuple(rows)


def _fates(plan: Plan) -> dict[int, list[Fate]]:
    """By bucket."""
    rides: dict[int, list[str]] = defaultdict(list)
    for task in plan.tasks:
        rides[task.generation].append(ride_text(plan, task))
    found: dict[int, list[Fate]] = defaultdict(list)
    for index in sorted(range(len(plan.generations)), key=lambda i: plan.generations[i].last_step):
        generation = plan.generations[index]
        applied = class_text(*generation_class(generation))
        fate = Fate(_steps_text(generation), applied, tuple(rides[index]))
        found[generation.bucket].append(fate)
    return found


def _steps_text(generation: Generation) -> str:
    if generation.first_step == generation.last_step:
        return f"step {generation.last_step}"
    return f"steps {generation.first_step} to {generation.last_step}"
