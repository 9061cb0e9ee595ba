"""A plan as text: for reading, and for telling two plans apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deft_horovod.contents import contents
from deft_horovod.parameter import WIRE_ITEM_BYTES
from deft_horovod.size import size_text

if TYPE_CHECKING:
    from deft_horovod.plan import Link, Plan

_NAMES_SHOWN = 4


def describe(plan: Plan) -> str:
    if not plan.buckets:
        return f"plan '{plan.policy}' ({plan.hash()[:12]}): nothing travels through the executor"
    sizes = _bucket_bytes(plan)
    head = f"plan '{plan.policy}' ({plan.hash()[:12]})"
    period, buffers = _many(plan.period, "step"), _many(plan.buffers, "buffer")
    slots, buckets = _many(len(plan.slots), "parameter"), _many(len(plan.buckets), "bucket")
    tasks, total = _many(len(plan.tasks), "message"), size_text(sum(sizes))
    lines = [
        f"{head}: period {period}, {buffers}",
        f"{slots} in {buckets}, {tasks} a cycle, {total} a buffer",
    ]
    lines += [f"link {number}: {_link_text(link)}" for number, link in enumerate(plan.links)]
    lines += [
        f"arena {number}: {arena.dtype} on {arena.device}, sent as {arena.wire}, "
        f"{size_text(arena.elements * WIRE_ITEM_BYTES[arena.wire])}"
        for number, arena in enumerate(plan.arenas)
    ]
    lines.append("")
    lines += _table(list(_task_rows(plan, sizes)))
    return "\n".join(lines)


def difference(here: Plan, there: Plan) -> str | None:
    for field in type(here).model_fields:
        mine, yours = getattr(here, field), getattr(there, field)
        if mine == yours:
            continue
        if not isinstance(mine, tuple):
            return f"{field}: {mine!r} here, {yours!r} there"
        for index, (a, b) in enumerate(zip(mine, yours, strict=False)):
            for part in type(a).model_fields:
                x, y = getattr(a, part), getattr(b, part)
                if x != y:
                    name = f" ('{a.name}')" if hasattr(a, "name") and part != "name" else ""
                    return f"{field}[{index}].{part}{name}: {x!r} here, {y!r} there"
        return f"{field}: {len(mine)} here, {len(yours)} there"
    return None


def _bucket_bytes(plan: Plan) -> list[int]:
    return [
        (bucket.end - bucket.begin) * WIRE_ITEM_BYTES[plan.arenas[bucket.arena].wire]
        for bucket in plan.buckets
    ]


def _link_text(link: Link) -> str:
    order = "in the order of the plan" if link.plan_order else "as they become ready"
    limits = []
    if link.credit_bytes:
        limits.append(size_text(link.credit_bytes))
    if link.credit_messages:
        limits.append(_many(link.credit_messages, "message"))
    credit = f"at most {' and '.join(limits)} in flight" if limits else "no limit in flight"
    return f"'{link.name}', messages leave {order}, {credit}"


def _task_rows(plan: Plan, sizes: list[int]) -> Iterator[tuple[str, ...]]:
    members = contents(plan.slots, plan.buckets)
    yield ("task", "message", "bucket", "bytes", "leaves from", "applied", "parameters")
    for index, task in enumerate(plan.tasks):
        generation = plan.generations[task.generation]
        applied = (
            f"before use in forward {generation.apply_step + 1}"
            if generation.gated
            else f"end of step {generation.apply_step}"
        )
        yield (
            str(index),
            task.op,
            str(generation.bucket),
            size_text(sizes[generation.bucket]),
            f"{task.stage} {task.step}",
            applied,
            _names_text([plan.slots[slot].name for slot in members[generation.bucket]]),
        )


def _names_text(names: list[str]) -> str:
    if len(names) <= _NAMES_SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMES_SHOWN - 1])}, ... {names[-1]} ({len(names)})"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
