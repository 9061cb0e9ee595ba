"""Own machines first, then the best performance for its price.

After "deadline-constrained bags of tasks on hybrid clouds" (arXiv 1604.08335): own machines are
used fully while they suffice. A free core is given the task closest to its deadline until none
fits. Then the own machine with most capacity is opened, or, if there is none, the machine with the
best performance for its price is rented.

Assumed, as the paper's tasks take one core: a job takes the fewest ranks that meet its deadline, of
all machines of a kind the one that is free first, and several machines where one has too few ranks.
A rented machine takes no job for which it would idle longer than starting another one takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from deft_horovod.capacity.problem.demand import Demand
from deft_horovod.capacity.problem.schedule import Schedule
from deft_horovod.capacity.problem.work import Way
from deft_horovod.capacity.schedule.calendar import Calendar
from deft_horovod.capacity.schedule.yard import Yard


def hybrid(demand: Demand) -> Schedule:
    """Jobs that fit no machine any more are missed."""
    works = demand.works
    ways = [_by_kind(demand, index) for index in range(len(works))]
    waiting = sorted(range(len(works)), key=lambda index: (works[index].deadline_s, index))
    yard = Yard(demand)
    full: set[Calendar] = set()  # no job that waits fits there, and time only goes on
    while waiting:
        placed = _on_free_rank(yard, waiting, ways, full)
        if placed is None:
            placed = _on_opened(yard, waiting, ways)
        if placed is None:
            break
        waiting.remove(placed)
    return yard.schedule()


def _by_kind(demand: Demand, work: int) -> dict[int, list[Way]]:
    """The fewest ranks first."""
    found: dict[int, list[Way]] = {}
    for way in sorted(demand.possible(demand.works[work]), key=lambda way: way.ranks):
        found.setdefault(way.kind, []).append(way)
    return found


def _on_free_rank(
    yard: Yard,
    waiting: Sequence[int],
    ways: Sequence[dict[int, list[Way]]],
    full: set[Calendar],
) -> int | None:
    """Gives the rank that is free first the job that is closest to its deadline."""
    calendars = [one for kind in yard.open for one in yard.open[kind] if one not in full]
    # Own machines are used fully before what is rented is used further.
    for calendar in sorted(calendars, key=lambda one: (not one.kind.is_own, one.free_s, one.unit)):
        for ready in (True, False):  # what can begin at once, then what leaves the rank idle
            for work in waiting:
                if (yard.demand.works[work].release_s <= calendar.free_s) == ready and _placed(
                    yard, work, ways[work].get(calendar.unit.kind, ()), calendar
                ):
                    return work
        full.add(calendar)
    return None


def _placed(yard: Yard, work: int, ways: Sequence[Way], calendar: Calendar) -> bool:
    """With the fewest ranks that meet the deadline; other machines of the kind join if need be."""
    kind = calendar.kind
    for way in ways:
        chosen = [calendar]
        if way.machines > 1:
            others = sorted(yard.open[calendar.unit.kind], key=lambda one: (one.end_s, one.unit))
            chosen += [one for one in others if one is not calendar][: way.machines - 1]
        if len(chosen) < way.machines:
            continue
        start_s = yard.fits(work, way, chosen)
        if start_s is None:
            continue
        idle_s = start_s - max(one.end_s for one in chosen)
        wasteful = not kind.is_own and idle_s > max(kind.start_up_s, kind.billed_s)
        if not wasteful or not yard.closed(calendar.unit.kind):
            yard.place(work, way, chosen, start_s)
            return True
    return False


def _on_opened(
    yard: Yard, waiting: Sequence[int], ways: Sequence[dict[int, list[Way]]]
) -> int | None:
    """Opens the next machine on which a job fits, and gives it the one closest to its deadline."""
    for kind in _order(yard.demand):
        for work in waiting if yard.closed(kind) else ():
            for way in ways[work].get(kind, ()):
                if way.machines <= yard.closed(kind):
                    calendars = yard.fresh(kind, way.machines)
                    start_s = yard.fits(work, way, calendars)
                    if start_s is not None:
                        yard.place(work, way, calendars, start_s)
                        return work
    return None


def _order(demand: Demand) -> list[int]:
    """Own machines by capacity, then rented ones by performance for their price."""

    def rank(index: int) -> tuple[bool, float, int]:
        kind = demand.kinds[index]
        performance = kind.ranks * kind.speed
        if not kind.is_own:
            performance /= max(kind.price_per_hour or 0.0, 1e-9)
        return not kind.is_own, -performance, index

    return sorted(range(len(demand.kinds)), key=rank)
