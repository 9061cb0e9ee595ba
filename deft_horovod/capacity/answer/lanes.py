"""Lanes: which ranks of a machine a job has, so that jobs can be drawn beside each other."""

from __future__ import annotations

from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.schedule import Schedule


def lanes(schedule: Schedule, unit: Unit) -> list[tuple[int, int, int, int, int]]:
    """Job, start, end, first lane and number of lanes; ranks are given in the order of starts."""
    kind = schedule.demand.kinds[unit.kind]
    free_s = [0] * kind.ranks
    found = []
    for one in schedule.by_unit.get(unit, ()):
        ranks = one.way.ranks_of_machine(kind.ranks)
        free = [lane for lane, until_s in enumerate(free_s) if until_s <= one.start_s][:ranks]
        for lane in free:
            free_s[lane] = one.end_s
        runs = _runs(free)
        found += [(one.work, one.start_s, one.end_s, first, count) for first, count in runs]
    return found


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for lane in numbers:
        if found and lane == sum(found[-1]):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((lane, 1))
    return found
