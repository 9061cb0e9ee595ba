"""Staleness: how late a plan applies how much of the gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from deft_horovod.plan.contents import bucket_bytes
from deft_horovod.plan.plan import Plan, Staleness


def staleness(plan: Plan) -> tuple[Staleness, ...]:
    """By delay, merged steps and gate, the freshest first. Together it is one step's bytes; where
    a class has a part in only some steps of the period, its mean."""
    sizes = bucket_bytes(plan)
    found: Counter[tuple[int, int, bool]] = Counter()
    for generation in plan.generations:
        kind = (generation.delay, generation.merged, generation.gated)
        found[kind] += sizes[generation.bucket] * generation.merged
    classes = []
    before = total = 0
    for (delay, merged, gated), period_bytes in sorted(found.items()):
        total += period_bytes
        here = total // plan.period - before  # so that rounding loses nothing
        before += here
        classes.append(Staleness(delay=delay, merged=merged, gated=gated, bytes=here))
    return tuple(classes)


def mean_staleness(kinds: Iterable[Staleness]) -> float:
    """Steps from a gradient to its update, the mean over the bytes; a gate costs none."""
    total = late = 0.0
    for kind in kinds:
        total += kind.bytes
        late += kind.bytes * (kind.delay + (kind.merged - 1) / 2)
    return late / total if total else 0.0


def updates_per_step(plan: Plan) -> float:
    """How often a gradient's parameters are updated: 1 without merging, 1/k where k steps travel
    together; the mean over the bytes."""
    sizes = bucket_bytes(plan)
    if not plan.generations:
        return 1.0
    applied = sum(sizes[generation.bucket] for generation in plan.generations)
    return applied / (plan.period * sum(sizes))
