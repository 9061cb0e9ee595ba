"""How long it takes at the size that is promised, on one core."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random
from typing import Any

from deft_horovod.capacity.problem.demand import Demand
from deft_horovod.capacity.problem.work import Way, Work
from deft_horovod.capacity.schedule.first_fit import first_fit
from deft_horovod.capacity.schedule.hybrid import hybrid
from scripts.studies.capacity.instances import bags, kinds
from scripts.studies.capacity.measure import schedules

JOBS, OWN, TASKS = 200, 50, 2_000
EFFORT = 5.0  # as `deft-profile capacity` has by default


def wide(demand: Demand, seed: int) -> Demand:
    """Jobs that may have several ranks, 1.8 times as fast with each doubling, and begin later."""
    random = Random(seed)  # noqa: S311
    works = []
    for work in demand.works:
        ways = [
            Way(way.kind, ranks, 1, max(1, round(way.duration_s / ranks**0.85)))
            for way in work.ways
            for ranks in (1, 2, 4)
            if ranks <= demand.kinds[way.kind].ranks
        ]
        release_s = random.choice((0, 0, round(work.deadline_s * random.uniform(0.0, 0.4))))
        fits = release_s + 2 * work.ways[0].duration_s <= work.deadline_s
        works.append(Work(work.name, release_s if fits else 0, work.deadline_s, 0, tuple(ways)))
    return replace(demand, works=tuple(works))


def scale() -> dict[str, Any]:
    """Seconds of a core."""
    demand = wide(bags(1, JOBS, kinds(1, OWN, 10), 2.5, 1.1), 1)
    found = {"jobs": JOBS, "machines": OWN, "kinds": 5, **schedules(demand, EFFORT)}
    demand = bags(2, TASKS, kinds(2, OWN, 200), 2.0)
    took_s = {}
    for name, method in (("hybrid", hybrid), ("first_fit", first_fit)):
        began_s = time.process_time()
        missed = len(method(demand).missed)
        took_s[name] = {"took_s": round(time.process_time() - began_s, 3), "missed": missed}
    return {"exact": found, "heuristics": {"tasks": TASKS, **took_s}}
