"""First fit decreasing: the baseline that arXiv 1604.08335 compares with.

Jobs by the time that they need, the longest first, each on the first machine on which it meets its
deadline: those in use in the order in which they were opened, own ones before rented ones, then the
next own one, then the next one to rent. Assumed: a job takes the fewest ranks that meet its
deadline, and machines to rent come in the order in which they are listed, whatever they cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deft_horovod.capacity.problem.demand import Demand
from deft_horovod.capacity.problem.schedule import Schedule
from deft_horovod.capacity.problem.work import Way
from deft_horovod.capacity.schedule.calendar import Calendar
from deft_horovod.capacity.schedule.yard import Yard


def first_fit(demand: Demand) -> Schedule:
    """Jobs that fit no machine are missed."""
    yard = Yard(demand)
    sizes = [_size_s(list(demand.possible(work))) for work in demand.works]
    for work in sorted(range(len(sizes)), key=lambda index: (-sizes[index], index)):
        _place(yard, work)
    return yard.schedule()


def _size_s(ways: Sequence[Way]) -> int:
    """Rank-seconds where it takes least."""
    return min((way.ranks * way.duration_s for way in ways), default=0)


def _place(yard: Yard, work: int) -> None:
    ways = sorted(yard.demand.possible(yard.demand.works[work]), key=lambda way: way.ranks)
    for kind in _own_first(yard.demand):
        for way in ways:
            if way.kind != kind:
                continue
            for calendars in _places(yard, way):
                start_s = yard.fits(work, way, calendars)
                if start_s is not None:
                    yard.place(work, way, calendars, start_s)
                    return


def _own_first(demand: Demand) -> list[int]:
    return sorted(range(len(demand.kinds)), key=lambda index: not demand.kinds[index].is_own)


def _places(yard: Yard, way: Way) -> Iterator[list[Calendar]]:
    """Machines in use, then with new ones."""
    used = yard.open[way.kind]
    if way.machines == 1:
        yield from ([calendar] for calendar in used)
    elif len(used) >= way.machines:
        yield sorted(used, key=lambda one: (one.end_s, one.unit))[: way.machines]
    more = min(way.machines, yard.closed(way.kind))
    if more:
        kept = sorted(used, key=lambda one: (one.end_s, one.unit))[: way.machines - more]
        if len(kept) + more == way.machines:
            yield [*kept, *yard.fresh(way.kind, more)]
