"""Assemble: choices and an order become a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.plan import Generation, Link, Plan, Stage, Task
from deft_horovod.plan.rules import buffers_needed, check_order
from deft_horovod.profile import HOROVOD_LINK, MEASURED_IN_FLIGHT
from deft_horovod.solver.messages.blocks import Blocking
from deft_horovod.solver.problem import Choice

# Enough that the next messages are negotiated while one travels, few enough that the plan's order
# is the order on the wire. What links cost is measured so.
CREDIT_MESSAGES: Final = MEASURED_IN_FLIGHT


@dataclass(frozen=True)
class Departure:
    """One message, in the order of departure."""

    block: int
    bucket: int  # among those of its block
    step: int  # of the period, in which its last gradient comes
    link: int
    # The window it is held back for (steps after `step`, stage). None: it leaves in its turn.
    window: tuple[int, Stage] | None = None


@dataclass(frozen=True)
class Timing:
    """The generations of a block: (first step, last step, delay) for each."""

    spans: tuple[tuple[int, int, int], ...]
    gated: bool = False

    @staticmethod
    def of(choice: Choice, period: int) -> Timing:
        return Timing(
            tuple(
                (last - choice.merged + 1, last, choice.delay) for last in choice.last_steps(period)
            ),
            choice.gated,
        )


def apart(spans: Sequence[tuple[int, int, int]], period: int) -> tuple[tuple[int, int, int], ...]:
    """Each applied after the one before it, as a boundary has room for one generation of a bucket:
    one in time that meets a late one waits as well. No delay gets longer than the longest."""
    spans = sorted(spans, key=lambda span: span[1])
    applied = [last + delay for _, last, delay in spans]
    for _ in range(2):  # once more for what the end of a period does to the beginning of the next
        before = applied[-1] - period
        for place, step in enumerate(applied):
            applied[place] = before = max(step, before + 1)
    pairs = zip(spans, applied, strict=True)
    return tuple((first, last, step - last) for (first, last, _), step in pairs)


def assemble(
    policy: str,
    blocking: Blocking,
    period: int,
    timings: Sequence[Timing],
    departures: Sequence[Departure],
    links: Sequence[str] = (HOROVOD_LINK,),
) -> Plan:
    """A message's window is the backward of its last gradient, or of what stands before it: no link
    idles for the sake of a window."""
    generations: list[Generation] = []
    index: dict[tuple[int, int, int], int] = {}
    for number, (block, timing) in enumerate(zip(blocking.blocks, timings, strict=True)):
        for place, bucket in enumerate(block.buckets):
            for first, last, delay in apart(timing.spans, period):
                index[number, place, last] = len(generations)
                generations.append(
                    Generation(
                        bucket=bucket,
                        first_step=first,
                        last_step=last,
                        apply_step=last + delay,
                        gated=timing.gated,
                    )
                )
    tasks = [
        Task(
            generation=index[departure.block, departure.bucket, departure.step],
            link=departure.link,
            step=step,
            stage=stage,
        )
        for departure, (step, stage) in zip(departures, _windows(departures), strict=True)
    ]
    return Plan(
        policy=policy,
        period=period,
        buffers=max(buffers_needed(generations, period), default=1),
        links=tuple(
            Link(name=name, credit_messages=CREDIT_MESSAGES, fusion=False) for name in links
        ),
        arenas=blocking.layout.arenas,
        slots=blocking.layout.slots,
        buckets=blocking.buckets,
        generations=tuple(generations),
        tasks=tuple(tasks),
    )


def reordered(plan: Plan, departures: Sequence[Departure], order: Sequence[int]) -> Plan:
    """The same messages in another order, of places in that of `departures`, by which the plan was
    made. Only what depends on the order is checked again."""
    moved = [departures[place] for place in order]
    tasks = []
    for place, (step, stage) in zip(order, _windows(moved), strict=True):
        task = plan.tasks[place]
        if (task.step, task.stage) != (step, stage):
            task = task.model_copy(update={"step": step, "stage": stage})
        tasks.append(task)
    found = plan.model_copy(update={"tasks": tuple(tasks)})
    check_order(found)
    return found


def _windows(departures: Sequence[Departure]) -> Iterator[tuple[int, Stage]]:
    """The step and the stage before which each is held back."""
    opens: dict[int, tuple[int, int]] = {}
    for departure in departures:
        after, stage = departure.window or (0, "backward")
        window = (departure.step + after, int(stage == "backward"))
        opens[departure.link] = window = max(window, opens.get(departure.link, window))
        yield window[0], "backward" if window[1] else "forward"
