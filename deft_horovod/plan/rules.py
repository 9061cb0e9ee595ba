"""What must hold for every plan. The first rule that is broken is named in a PlanError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from deft_horovod.base.parameter import WIRE_ITEM_BYTES
from deft_horovod.base.wire_format import EXACT
from deft_horovod.errors import PlanError, explain
from deft_horovod.plan.contents import contents

if TYPE_CHECKING:
    from deft_horovod.plan.plan import Arena, Generation, Plan, Task

# Slots and buckets start at multiples of it, and a slot's header is as long: so no cut can go
# through a header.
ALIGN_BYTES: Final = 16
# Messages that can be kept from being fused while all of them are in flight.
MOST_UNFUSED: Final = 8

# (step, 0 forward | 1 backward): windows in the order of time.
_Window = tuple[int, int]


def check(plan: Plan) -> None:
    for rule in (
        _references,
        _arenas,
        _slots,
        _tiling,
        _links,
        _formats,
        _coverage,
        _boundaries,
        _windows,
        _deadlines,
        _buffers,
    ):
        rule(plan)


def check_order(plan: Plan) -> None:
    """Of a plan that obeys all rules, and whose tasks are in another order now."""
    for rule in (_windows, _deadlines):
        rule(plan)


def unit_elements(wire: str) -> int:
    """Elements in 16 bytes: the size of a header, and what everything is aligned to."""
    return ALIGN_BYTES // WIRE_ITEM_BYTES[wire]


def _broken(rule: str, what: str, observed: object, expected: object) -> PlanError:
    return PlanError(
        explain(
            f"plan rule '{rule}': {what}",
            observed=observed,
            expected=expected,
            action="make the plan anew; if a policy of this package made it, report a defect",
        )
    )


def _references(plan: Plan) -> None:
    """references: every index points at something that exists."""
    counts = {
        "arena": len(plan.arenas),
        "bucket": len(plan.buckets),
        "generation": len(plan.generations),
        "link": len(plan.links),
    }
    groups = (
        ("slot", plan.slots, ("arena",)),
        ("bucket", plan.buckets, ("arena",)),
        ("generation", plan.generations, ("bucket",)),
        ("task", plan.tasks, ("generation", "link")),
    )
    for kind, items, fields in groups:
        for index, item in enumerate(items):
            for field in fields:
                value = getattr(item, field)
                if value >= counts[field]:
                    raise _broken(
                        "references",
                        f"{kind} {index} points at a {field} that does not exist",
                        f"{field} {value}",
                        f"less than {counts[field]}",
                    )


def _arenas(plan: Plan) -> None:
    """arenas: their elements can travel."""
    for index, arena in enumerate(plan.arenas):
        if arena.wire not in WIRE_ITEM_BYTES:
            raise _broken(
                "arenas",
                f"arena {index} has an unknown wire dtype",
                arena.wire,
                ", ".join(WIRE_ITEM_BYTES),
            )


def _slots(plan: Plan) -> None:
    """slots: each lies in its arena, aligned, with a header, and shares no element."""
    _unique("slots", "slot", [slot.name for slot in plan.slots])
    order = sorted(range(len(plan.slots)), key=lambda i: (plan.slots[i].arena, plan.slots[i].begin))
    previous = None
    for index in order:
        slot = plan.slots[index]
        arena = plan.arenas[slot.arena]
        unit = unit_elements(arena.wire)
        where = f"elements [{slot.begin}, {slot.end})"
        if slot.begin % unit:
            raise _broken(
                "slots", f"slot '{slot.name}' is not aligned", where, f"a multiple of {unit}"
            )
        if slot.end < slot.begin + unit:
            raise _broken(
                "slots", f"slot '{slot.name}' has no header", where, f"at least {unit} elements"
            )
        if slot.end > arena.elements:
            raise _broken(
                "slots",
                f"slot '{slot.name}' leaves arena {slot.arena}",
                where,
                f"within {arena.elements} elements",
            )
        if previous is not None and previous.arena == slot.arena and previous.end > slot.begin:
            raise _broken(
                "slots",
                f"slots '{previous.name}' and '{slot.name}' overlap",
                f"[{previous.begin}, {previous.end}) and [{slot.begin}, {slot.end})",
                "no element in common",
            )
        previous = slot


def _tiling(plan: Plan) -> None:
    """tiling: the buckets of an arena cover it without gap or overlap, aligned."""
    by_arena: list[list[int]] = [[] for _ in plan.arenas]
    for index, bucket in enumerate(plan.buckets):
        by_arena[bucket.arena].append(index)
    for number, (arena, members) in enumerate(zip(plan.arenas, by_arena, strict=True)):
        _tile(plan, number, arena, sorted(members, key=lambda i: plan.buckets[i].begin))
    for index, inside in enumerate(contents(plan.slots, plan.buckets)):
        if not inside:
            raise _broken(
                "tiling",
                f"bucket {index} carries no slot, so nothing would ever make it ready",
                "no slot",
                "a part of at least one",
            )


def _tile(plan: Plan, number: int, arena: Arena, members: list[int]) -> None:
    reached = 0
    for index in members:
        bucket = plan.buckets[index]
        if bucket.begin != reached or bucket.end <= bucket.begin:
            raise _broken(
                "tiling",
                f"bucket {index} leaves a gap, overlaps or is empty in arena {number}",
                f"elements [{bucket.begin}, {bucket.end})",
                f"a range that begins at {reached}",
            )
        if bucket.begin % unit_elements(arena.wire):
            raise _broken(
                "tiling",
                f"bucket {index} does not begin at a multiple of {ALIGN_BYTES} bytes",
                f"element {bucket.begin}",
                f"a multiple of {unit_elements(arena.wire)}",
            )
        reached = bucket.end
    if reached != arena.elements:
        raise _broken(
            "tiling",
            f"the buckets of arena {number} do not end with it",
            f"they end at element {reached}",
            f"element {arena.elements}",
        )


def _links(plan: Plan) -> None:
    """links: names differ; messages in flight are limited only where the plan fixes their order,
    and have to be where the plan forbids to fuse them."""
    _unique("links", "link", [link.name for link in plan.links])
    for link in plan.links:
        if not link.plan_order and (link.credit_bytes or link.credit_messages):
            raise _broken(
                "links",
                f"link '{link.name}' limits what is in flight but not the order of messages",
                f"credit of {link.credit_bytes} bytes, {link.credit_messages} messages",
                "plan_order, or credits of 0",
            )
        if not link.fusion and not 0 < link.credit_messages <= MOST_UNFUSED:
            raise _broken(
                "links",
                f"more messages may be in flight on link '{link.name}' than can be kept apart",
                f"credit of {link.credit_messages} messages (0: no limit), fusion forbidden",
                f"1 to {MOST_UNFUSED} messages",
            )


def _formats(plan: Plan) -> None:
    """formats: what is encoded is float32, travels by one all-reduce and leaves in plan order, so
    that what rounding left of a message goes into the next one of its bucket."""
    for index, bucket in enumerate(plan.buckets):
        wire = plan.arenas[bucket.arena].wire
        if bucket.format != EXACT and wire != "float32":
            raise _broken(
                "formats", f"bucket {index} is {bucket.format}, but not of float32", wire, "float32"
            )
    for index, task in enumerate(plan.tasks):
        if plan.buckets[plan.generations[task.generation].bucket].format == EXACT:
            continue
        if task.op != "all_reduce" or not plan.links[task.link].plan_order:
            raise _broken(
                "formats",
                f"task {index} is encoded and travels in a way that cannot be",
                f"an {task.op} on link '{plan.links[task.link].name}'",
                "an all_reduce on a link that keeps to the order of the plan",
            )


def _coverage(plan: Plan) -> None:
    """coverage: each step of each bucket is carried by one generation, each of which travels."""
    carried = [[0] * plan.period for _ in plan.buckets]
    for index, generation in enumerate(plan.generations):
        first, last = generation.first_step, generation.last_step
        if not 0 <= last < plan.period or not last - plan.period < first <= last:
            raise _broken(
                "coverage",
                f"generation {index} does not end in the period, or is longer",
                f"steps {first} .. {last}",
                f"1 to {plan.period} steps, the last one within 0 .. {plan.period - 1}",
            )
        if generation.apply_step < last:
            raise _broken(
                "coverage",
                f"generation {index} is applied before it is complete",
                f"apply_step {generation.apply_step}",
                f"{last} or later",
            )
        for step in range(first, last + 1):
            carried[generation.bucket][step % plan.period] += 1
    for bucket, steps in enumerate(carried):
        for step, times in enumerate(steps):
            if times != 1:
                raise _broken(
                    "coverage",
                    f"step {step} of bucket {bucket} is not carried exactly once",
                    f"{times} generations",
                    "1",
                )
    travelling = {task.generation for task in plan.tasks}
    for index in range(len(plan.generations)):
        if index not in travelling:
            raise _broken("coverage", f"generation {index} never travels", "no task", "1 or more")


def _boundaries(plan: Plan) -> None:
    """boundaries: one generation of a bucket at most is applied at each, as a parameter has one
    gradient there."""
    applied: dict[tuple[int, int], int] = {}
    for index, generation in enumerate(plan.generations):
        boundary = (generation.bucket, generation.apply_step % plan.period)
        other = applied.setdefault(boundary, index)
        if other != index:
            raise _broken(
                "boundaries",
                f"generations {other} and {index} of bucket {generation.bucket} are applied at "
                "the same boundary",
                f"step {boundary[1]} of the period",
                "a boundary for each",
            )


def _window(task: Task) -> _Window:
    return (task.step, 1 if task.stage == "backward" else 0)


def _window_text(window: _Window) -> str:
    return f"{'backward' if window[1] else 'forward'} of step {window[0]}"


def _windows(plan: Plan) -> None:
    """windows: a message leaves after its last gradient."""
    for index, task in enumerate(plan.tasks):
        earliest = (plan.generations[task.generation].last_step, 1)
        if _window(task) < earliest:
            raise _broken(
                "windows",
                f"task {index} would leave before its last gradient is there",
                _window_text(_window(task)),
                f"{_window_text(earliest)} or later",
            )


def _deadlines(plan: Plan) -> None:
    """deadlines: what is applied at a boundary can leave before it.

    A message waits for its own window and for those of all messages before it in its generation
    and, in plan order, on its link; there the lists of successive cycles run one after another.
    """
    lanes: list[_Window] = [(0, 0)] * len(plan.links)
    in_order = [link.plan_order for link in plan.links]
    latest = max((task.step for task in plan.tasks), default=0)
    # Looked up once: a plan has thousands of tasks.
    ends = [_deadline(generation) for generation in plan.generations]
    tasks = [(*_window(task), task.generation, task.link) for task in plan.tasks]
    for cycle in range(2 + latest // plan.period):  # then it repeats itself
        shift = cycle * plan.period
        in_turn: list[_Window] = [(0, 0)] * len(ends)
        for index, (step, stage, generation, link) in enumerate(tasks):
            leaves = max((step + shift, stage), in_turn[generation])
            if in_order[link]:
                leaves = lanes[link] = max(leaves, lanes[link])
            in_turn[generation] = leaves
            end_step, end_stage = ends[generation]
            if leaves > (end_step + shift, end_stage):
                raise _broken(
                    "deadlines",
                    f"task {index} leaves too late, by its own window or one listed before it",
                    f"{_window_text(leaves)}",
                    f"{_window_text((end_step + shift, end_stage))} or earlier",
                )


def _deadline(generation: Generation) -> _Window:
    if generation.gated:
        return (generation.apply_step + 1, 0)
    return (generation.apply_step, 1)


def _buffers(plan: Plan) -> None:
    """buffers: when a generation begins, the buffer whose turn it is is free."""
    for bucket, needed in enumerate(buffers_needed(plan.generations, plan.period)):
        if needed > plan.buffers:
            raise _broken(
                "buffers",
                f"generations of bucket {bucket} coexist",
                f"{plan.buffers} buffers",
                f"at least {needed}",
            )


def buffers_needed(generations: Sequence[Generation], period: int) -> list[int]:
    """By each bucket, if its generations take the buffers in turn."""
    by_bucket: dict[int, list[Generation]] = {}
    for generation in sorted(generations, key=lambda g: g.first_step):
        by_bucket.setdefault(generation.bucket, []).append(generation)
    return [_needed(by_bucket[bucket], period) for bucket in sorted(by_bucket)]


def _needed(generations: list[Generation], period: int) -> int:
    """Buffers are taken in turn, so what counts is how far back the oldest one in use lies."""
    count = len(generations)
    back = 0
    for this, begun in enumerate(generations):
        for other, older in enumerate(generations):
            # The instance of `older` that lies `cycles` back is in use until its apply step.
            cycles = (older.apply_step - begun.first_step) // period
            back = max(back, cycles * count + this - other)
    return back + 1


def _unique(rule: str, kind: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise _broken(
                rule, f"two {kind}s have one name", f"'{name}' twice", "names that differ"
            )
        seen.add(name)
