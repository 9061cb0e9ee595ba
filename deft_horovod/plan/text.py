"""A plan as text: for reading, and for telling two plans apart."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from deft_horovod.base.parameter import WIRE_ITEM_BYTES
from deft_horovod.base.size import size_text
from deft_horovod.plan.formats_text import formats_lines
from deft_horovod.plan.rows import BucketRow, bucket_rows
from deft_horovod.plan.words import (
    class_text,
    many,
    ms_text,
    ranges_text,
)

if TYPE_CHECKING:
    from deft_horovod.plan.plan import Link, Plan, Prediction

_WIDTH: Final = 100
_BAR: Final = 40  # characters for all of the gradients


def describe(plan: Plan) -> str:
    """What is predicted, what there is, what each bucket does, in which order messages leave."""
    head = f"plan '{plan.policy}' ({plan.hash()[:12]})"
    predicted = _prediction_lines(plan.prediction) if plan.prediction else []
    if not plan.buckets:
        return "\n".join([f"{head}: nothing travels through the executor", *predicted])
    rows = bucket_rows(plan)
    period, buffers = many(plan.period, "step"), many(plan.buffers, "buffer")
    slots, buckets = many(len(plan.slots), "parameter"), many(len(plan.buckets), "bucket")
    tasks, total = many(len(plan.tasks), "message"), size_text(sum(row.bytes for row in rows))
    lines = [
        f"{head}: period {period}, {buffers}",
        *predicted,
        f"{slots} in {buckets}, {tasks} a cycle, {total} a buffer",
    ]
    lines += formats_lines(plan)
    lines += [f"link {number}: {_link_text(link)}" for number, link in enumerate(plan.links)]
    lines += [
        f"arena {number}: {arena.dtype} on {arena.device}, sent as {arena.wire}, "
        f"{size_text(arena.elements * WIRE_ITEM_BYTES[arena.wire])}"
        for number, arena in enumerate(plan.arenas)
    ]
    return "\n".join([*lines, "", *_bucket_lines(rows), *_order_lines(plan)])


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


def _prediction_lines(prediction: Prediction) -> list[str]:
    compute, step = ms_text(prediction.compute_us), ms_text(prediction.step_us)
    exposed, bound = ms_text(prediction.exposed_us), ms_text(prediction.bound_us)
    gap = f"{prediction.gap:.1%} above ({prediction.status})"
    lines = [
        f"predicted: compute {compute}, step {step}, exposed {exposed}",
        f"no plan within the limits is below {bound}, this one is {gap}",
        f"updates per step: {prediction.updates_per_step:.2f}",
    ]
    total = sum(part.bytes for part in prediction.staleness)
    rows = [
        (
            class_text(part.delay, part.merged, part.gated),
            size_text(part.bytes),
            f"{part.bytes / total:.1%}",
            "#" * max(1, round(_BAR * part.bytes / total)),
        )
        for part in prediction.staleness
        if total
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return lines + [
        f"  {name:<{widths[0]}}  {size:>{widths[1]}}  {share:>{widths[2]}}  {bar}"
        for name, size, share, bar in rows
    ]


def _link_text(link: Link) -> str:
    order = "in the order of the plan" if link.plan_order else "as they become ready"
    limits = []
    if link.credit_bytes:
        limits.append(size_text(link.credit_bytes))
    if link.credit_messages:
        limits.append(many(link.credit_messages, "message"))
    credit = f"at most {' and '.join(limits)} in flight" if limits else "no limit in flight"
    return f"'{link.name}', messages leave {order}, {credit}"


def _bucket_lines(rows: Sequence[BucketRow]) -> list[str]:
    lines = []
    for row in rows:
        head = f"bucket {row.bucket}: {row.size_text}, {row.carries}"
        if row.alike:
            lines.append(f"{head}, {row.fates[0].text}")
        else:
            lines += [f"{head}:", *(f"  {fate.steps}: {fate.text}" for fate in row.fates)]
    return lines


def _order_lines(plan: Plan) -> list[str]:
    """The buckets in the order in which they leave, by window, on links that keep to it."""
    lines = []
    for number, link in enumerate(plan.links):
        tasks = [task for task in plan.tasks if task.link == number]
        if not link.plan_order or not tasks:
            continue
        lines += ["", f"order on link {link.name}, from the beginning of each window:"]
        for (step, stage), group in groupby(tasks, lambda task: (task.step, task.stage)):
            order = [plan.generations[task.generation].bucket for task in group]
            text = f"{stage} of step {step}: bucket{'s' * (len(order) > 1)} {ranges_text(order)}"
            lines += textwrap.wrap(
                text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
            )
    return lines
