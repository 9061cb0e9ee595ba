"""Neighbourhoods: what of a schedule is planned anew while the rest stays.

Large schedules are improved piece by piece: the jobs of a rented machine or two and of a few others
are taken away, and CP-SAT places them anew on these machines and on fresh ones. Which machines
these are is drawn with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.schedule import Placement, Schedule

_MOST_JOBS: Final = 14
_RENTED, _OTHERS = (1, 2, 3), 4  # machines that are planned anew


@dataclass(frozen=True)
class Neighbourhood:
    """The machines that are looked at, and the jobs that stay."""

    units: tuple[Unit, ...]
    fixed: tuple[Placement, ...]


def drawn(schedule: Schedule, random: Random) -> Neighbourhood:
    """Missed jobs are always among those that are placed."""
    rented = [rental.unit for rental in schedule.rentals]
    count = min(len(rented), random.choice(_RENTED))
    chosen = random.sample(rented, count)
    others = [unit for unit in _used_or_own(schedule) if unit not in chosen]
    chosen += random.sample(others, min(len(others), _OTHERS))
    free = _free_jobs(schedule, chosen, random)
    fixed = tuple(one for one in schedule.placements if one.work not in free)
    # A job on several machines that goes away leaves all of them.
    left = {unit for one in schedule.placements if one.work in free for unit in one.units}
    return Neighbourhood(tuple(sorted({*chosen, *left, *_fresh(schedule)})), fixed)


def _used_or_own(schedule: Schedule) -> list[Unit]:
    demand = schedule.demand
    own = [u for k, kind in enumerate(demand.kinds) if kind.is_own for u in demand.units(k)]
    return sorted({*own, *schedule.by_unit})


def _free_jobs(schedule: Schedule, chosen: Sequence[Unit], random: Random) -> set[int]:
    """Those of the first machines whole, as far as there are not too many."""
    found: set[int] = set()
    for unit in chosen:
        jobs = [one.work for one in schedule.by_unit.get(unit, ())]
        room = _MOST_JOBS - len(found)
        if len(jobs) > room:
            first = random.randrange(len(jobs) - room + 1)
            jobs = jobs[first : first + room]
        found.update(jobs)
    return found


def _fresh(schedule: Schedule) -> list[Unit]:
    """The next machine of each kind to rent."""
    demand, used = schedule.demand, schedule.by_unit
    found = []
    for index, kind in enumerate(demand.kinds):
        if not kind.is_own:
            free = [unit for unit in demand.units(index) if unit not in used]
            found += free[:1]
    return found
