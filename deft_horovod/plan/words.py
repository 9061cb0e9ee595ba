"""The words in which plans are told: what a bucket carries, how late it is, when it travels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deft_horovod.plan.plan import Generation, Plan, Slot, Task


def many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def ms_text(time_us: float) -> str:
    return f"{time_us / 1000:,.2f} ms"


def class_text(delay: int, merged: int, gated: bool) -> str:
    """How a generation is applied."""
    words = [f"{merged} steps merged"] if merged > 1 else []
    if delay:
        words.append(f"delay {delay}")
    if gated:
        words.append("gated")
    return ", ".join(words) or "synchronous"


def generation_class(generation: Generation) -> tuple[int, int, bool]:
    """Its delay, the steps merged in it, and whether it is gated."""
    return (
        generation.delay,
        generation.merged,
        generation.gated,
    )


def ride_text(plan: Plan, task: Task) -> str:
    """When and where it travels; t is the step of the generation's last gradient."""
    after = task.step - plan.generations[task.generation].last_step
    window = f"{task.stage} of t{f'+{after}' if after else ''} on link {plan.links[task.link].name}"
    return window if task.op == "all_reduce" else f"{window} ({task.op})"


def layer_of(slot: Slot) -> str:
    """The module that the name of a parameter names."""
    return slot.name.rpartition(".")[0] or slot.name


def layer_numbers(plan: Plan) -> dict[str, int]:
    """The layers from 1 on, in the order of the parameters."""
    found = dict.fromkeys(layer_of(slot) for slot in plan.slots)
    return {name: number for number, name in enumerate(found, start=1)}


def carries_text(plan: Plan, members: Sequence[int], numbers: Mapping[str, int]) -> str:
    """The layers of these slots, or the parameter if it is only one."""
    names = sorted({layer_of(plan.slots[index]) for index in members}, key=numbers.__getitem__)
    if len(members) == 1:
        return f"layer {numbers[names[0]]} ({plan.slots[members[0]].name})"
    shown = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"
    ranges = ranges_text(numbers[name] for name in names)
    return f"layer{'s' if len(names) > 1 else ''} {ranges} ({shown})"


def ranges_text(numbers: Iterable[int]) -> str:
    """Ascending numbers, with runs drawn together: 1-3, 7."""
    values = list(numbers)
    ends = [index for index, (a, b) in enumerate(pairwise(values)) if b != a + 1]
    parts, first = [], 0
    for last in [*ends, len(values) - 1]:
        run = values[first : last + 1]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
        first = last + 1
    return ", ".join(parts)
