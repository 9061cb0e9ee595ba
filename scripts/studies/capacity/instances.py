"""Seeded instances: bags of tasks on hybrid clouds, and applications to consolidate.

Known of arXiv 1604.08335: bags of tasks with deadlines, each task on a core, own machines, and
kinds of machines to rent. Known of arXiv 1604.08330: several applications, each with virtual
machines of its own, on machines of a data centre. All numbers below are assumed.
"""

from __future__ import annotations

from random import Random

from deft_horovod.capacity.consolidate.tenants import Offer, Tenant, Tenants
from deft_horovod.capacity.problem.demand import Demand
from deft_horovod.capacity.problem.machine_kind import HOUR_S, MachineKind
from deft_horovod.capacity.problem.work import Way, Work

GB = 10**9
# Name, cores, gigabytes, price of an hour, speed of a core: dearer ones have more or faster cores,
# and not quite in proportion.
RENTED = (
    ("one", 1, 4, 0.05, 0.9),
    ("two", 2, 8, 0.10, 1.0),
    ("four", 4, 16, 0.19, 1.0),
    ("eight", 8, 32, 0.40, 1.1),
    ("fast", 4, 16, 0.28, 1.5),
)


def kinds(seed: int, own: int, limit: int) -> tuple[MachineKind, ...]:
    """Own machines have two cores of speed 1. Rented ones start up in two minutes, are billed by
    the hour, and are listed in any order, as first fit takes them in that order."""
    found = [MachineKind("own", own, 2, 8 * GB)]
    found += [
        MachineKind(name, limit, cores, memory * GB, price, 120, HOUR_S, speed)
        for name, cores, memory, price, speed in Random(seed).sample(RENTED, 5)  # noqa: S311
    ]
    return tuple(found)


def bags(
    seed: int, tasks: int, machines: tuple[MachineKind, ...], load: float, slack: float = 2.0
) -> Demand:
    """All tasks are there at the beginning, in bags that share a deadline.

    `load`: the work of all tasks over what own cores do until the mean deadline; so much more than
    they can, or less. `slack`: no deadline is nearer than so many times the task's own length.
    """
    random = Random(seed)  # noqa: S311
    lengths_s = [random.randint(10, 60) * 60 for _ in range(tasks)]
    own = sum(kind.count * kind.ranks for kind in machines if kind.is_own)
    mean_s = sum(lengths_s) / own / load
    deadlines_s: list[int] = []
    while len(deadlines_s) < tasks:  # bags of 5 to 15 tasks
        deadline_s = round(mean_s * random.uniform(0.6, 1.4))
        deadlines_s += [deadline_s] * random.randint(5, 15)
    works = [
        Work(
            name=f"task{number}",
            release_s=0,
            deadline_s=max(deadlines_s[number], round(slack * length_s) + 120),
            memory_bytes=random.choice((1, 2, 3)) * GB,
            ways=tuple(
                Way(index, 1, 1, round(length_s / kind.speed))
                for index, kind in enumerate(machines)
            ),
        )
        for number, length_s in enumerate(lengths_s)
    ]
    return Demand(tuple(works), machines)


def applications(seed: int, count: int) -> Tenants:
    """Each is fast enough with so many cores of a machine, or with a few more on several."""
    random = Random(seed)  # noqa: S311
    machines = (
        MachineKind("small", count, 8, 32 * GB),
        MachineKind("large", count, 16, 64 * GB, None, 0, 1, 1.1),
    )
    tenants = []
    for number in range(count):
        cores = random.randint(1, 14)
        spread = cores + random.randint(0, 2)
        memory = random.choice((1, 2, 4, 6)) * GB
        offers = []
        for index, kind in enumerate(machines):
            needed = -int(-cores // kind.speed)
            if needed <= min(kind.ranks, kind.memory_bytes // memory):
                offers.append(Offer(index, needed, together=True))
            if spread > 1:
                offers.append(Offer(index, -int(-spread // kind.speed), together=False))
        tenants.append(Tenant(f"application{number}", memory, tuple(offers)))
    return Tenants(tuple(tenants), machines)
