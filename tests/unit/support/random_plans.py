"""Random plans of any shape that the rules allow: periods, delays, gates, several links."""

import itertools

from hypothesis import strategies as st

from deft_horovod.errors import PlanError
from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Task

_UNIT = 4  # float32 elements in 16 bytes


def slots_and_buckets(pick):
    """Slots of a few units behind each other; cuts between buckets may go through them."""
    slots, at = [], 0
    for i in range(pick.randint(1, 6)):
        elements = _UNIT + pick.randint(0, 10)
        slots.append(Slot(name=f"s{i}", arena=0, begin=at, end=at + elements))
        at += -(-elements // _UNIT) * _UNIT
    units = at // _UNIT
    cuts = sorted(pick.sample(range(1, units), min(units - 1, pick.randint(0, 4))))
    edges = [0, *(cut * _UNIT for cut in cuts), at]
    buckets = [Bucket(arena=0, begin=a, end=b) for a, b in itertools.pairwise(edges)]
    return at, slots, buckets


def _generations(pick, bucket, period):
    starts = sorted({pick.choice([0, pick.randrange(period)]) for _ in range(pick.randint(1, 3))})
    ends = [*(start - 1 for start in starts[1:]), starts[0] - 1 + period]
    generations, free = [], set(range(period))
    for first, end in zip(starts, ends, strict=True):
        cycle = period if end >= period else 0  # it ends in the next one, so it began before it
        last = end - cycle
        applied = pick.choice([last + d for d in (0, 0, 1, 2) if (last + d) % period in free])
        free.remove(applied % period)
        generations.append(
            Generation(
                bucket=bucket,
                first_step=first - cycle,
                last_step=last,
                apply_step=applied,
                gated=pick.random() < 0.3,
            )
        )
    return generations


def _tasks(pick, index, generation, links):
    """One message, or a reduce-scatter and an all-gather, at any time that is allowed."""
    earliest = 2 * generation.last_step + 1
    latest = 2 * generation.apply_step + 1 + generation.gated
    ops = pick.choice([["all_reduce"], ["all_reduce"], ["reduce_scatter", "all_gather"]])
    times = sorted(pick.randint(earliest, latest) for _ in ops)
    return [
        Task(
            generation=index,
            op=op,
            link=pick.randrange(links),
            step=time // 2,
            stage=("forward", "backward")[time % 2],
        )
        for op, time in zip(ops, times, strict=True)
    ]


def _links(pick, count):
    return [
        Link(
            name=f"link{i}",
            credit_bytes=pick.choice([0, 0, 1, 32, 48, 64, 96, 200]),
            credit_messages=pick.choice([0, 0, 1, 2]),
        )
        for i in range(count)
    ]


def _window(task):
    return 2 * task.step + (task.stage == "backward")


@st.composite
def plans(draw):
    pick = draw(st.randoms(use_true_random=False))
    elements, slots, buckets = slots_and_buckets(pick)
    period = pick.randint(1, 3)
    generations = [g for b in range(len(buckets)) for g in _generations(pick, b, period)]
    pick.shuffle(generations)
    links = _links(pick, pick.randint(1, 2))
    chains = [_tasks(pick, i, g, len(links)) for i, g in enumerate(generations)]
    pick.shuffle(chains)
    tasks = [task for chain in chains for task in chain]
    ordered = sorted(tasks, key=_window) if pick.random() < 0.7 else tasks
    fields = {
        "policy": "random",
        "period": period,
        "arenas": (Arena(dtype="float32", wire="float32", device="cpu", elements=elements),),
        "slots": tuple(slots),
        "buckets": tuple(buckets),
        "generations": tuple(generations),
    }
    buffers = pick.randint(0, 1) + buffers_for(fields, links, tasks)
    try:
        return Plan(**fields, buffers=buffers, links=tuple(links), tasks=tuple(ordered))
    except PlanError:  # one would leave behind its deadline: so let them leave as they get ready
        free = tuple(Link(name=link.name, plan_order=False) for link in links)
        return Plan(**fields, buffers=buffers, links=free, tasks=tuple(tasks))


def buffers_for(fields, links, tasks):
    """As few as are enough."""
    free = tuple(Link(name=link.name, plan_order=False) for link in links)
    for buffers in range(1, 9):
        try:
            Plan(**fields, buffers=buffers, links=free, tasks=tuple(tasks))
        except PlanError:
            continue
        return buffers
    raise AssertionError("delays of up to two steps never need so many buffers")
