"""How late a plan's updates come, in words."""

from __future__ import annotations

from collections import Counter
from typing import Final

from deft_horovod.plan.formats_text import formats_text
from deft_horovod.plan.plan import Plan
from deft_horovod.plan.staleness import staleness
from deft_horovod.plan.words import many

IN_TIME: Final = "every update in time"


def bytes_of_step(plan: Plan) -> Counter[tuple[int, int]]:
    """Bytes of one step's gradients by (delay, merged steps); a gate makes nothing late."""
    sizes: Counter[tuple[int, int]] = Counter()
    for part in staleness(plan):
        sizes[part.delay, part.merged] += part.bytes
    return sizes


def staleness_text(plan: Plan) -> str:
    """Of the bytes of a step, how many come how late and in which format; nothing where none
    travel."""
    sizes = bytes_of_step(plan)
    total = sum(sizes.values())
    late = {key: size for key, size in sizes.items() if key != (0, 1)}
    if not total:
        return ""
    rounded = formats_text(plan)
    if not late:
        return "; ".join(filter(None, (IN_TIME, rounded)))
    parts = [
        f"{100 * size / total:.0f} % of the bytes {_lateness(delay, merged)}"
        for (delay, merged), size in sorted(late.items())
    ]
    return "; ".join(filter(None, (*parts, rounded)))


def _lateness(delay: int, merged: int) -> str:
    words = [f"{many(delay, 'step')} late"] if delay else []
    if merged > 1:
        words.append(f"{merged} steps at once")
    return ", ".join(words)
