"""Small demands and tenants for tests of `deft_horovod.capacity`, and brute force for them."""

from itertools import permutations, product

from hypothesis import strategies as st

from deft_horovod.capacity.consolidate.tenants import Offer, Tenant, Tenants
from deft_horovod.capacity.problem.demand import Demand, Unit
from deft_horovod.capacity.problem.machine_kind import MachineKind
from deft_horovod.capacity.problem.schedule import Placement, Schedule
from deft_horovod.capacity.problem.work import Way, Work
from deft_horovod.capacity.schedule.calendar import Calendar, together_s

OWN = MachineKind("own", 1, 2, 8)
RENTED = MachineKind("rented", 2, 2, 8, 3.6, 60, 600)


def job(name="job", deadline_s=10_000, ways=((0, 1, 1, 1_000),), release_s=0, memory_bytes=1):
    return Work(name, release_s, deadline_s, memory_bytes, tuple(Way(*way) for way in ways))


def demand(*works, kinds=(OWN, RENTED)):
    return Demand(works, kinds)


@st.composite
def demands(draw, most_jobs=6):
    """Jobs of one or two ranks on one machine or on two, some of which cannot be met."""
    own = MachineKind("own", draw(st.integers(0, 2)), draw(st.integers(1, 2)), 6)
    kinds = (
        own,
        MachineKind("plain", draw(st.integers(0, 3)), 1, 6, 1.2, draw(st.integers(0, 90)), 60),
        MachineKind("twice", draw(st.integers(0, 2)), 2, 6, 2.0, 30, 3600, 1.5),
    )
    works = []
    for number in range(draw(st.integers(1, most_jobs))):
        length_s = draw(st.integers(1, 600))
        release_s = draw(st.sampled_from((0, 0, 200)))
        deadline_s = release_s + draw(st.integers(length_s // 2 + 1, 1_500))
        memory = draw(st.integers(0, 3))
        ways = []
        for index, kind in enumerate(kinds):
            ways.append(Way(index, 1, 1, length_s))
            if kind.ranks > 1:
                ways.append(Way(index, 2, 1, -(-length_s * 6 // 10)))
            if draw(st.booleans()):
                ways.append(Way(index, 2 * kind.ranks, 2, -(-length_s // (2 * kind.ranks)) + 5))
        works.append(Work(f"job{number}", release_s, deadline_s, memory, tuple(ways)))
    return Demand(tuple(works), kinds)


def least_cost(demand_):
    """Of all schedules in which each job begins as early as jobs before it allow, in any order.
    Rents are smallest there if a machine is billed by what it is rented for and all jobs are there
    at the beginning."""
    best = (len(demand_.works), 0)
    options = [[None, *_places(demand_, work)] for work in demand_.works]
    for order in permutations(range(len(options))):
        for places in product(*(options[work] for work in order)):
            found = _played(demand_, order, places)
            if found is not None:
                best = min(best, found.cost)
    return best


def _places(demand_, work):
    for way in demand_.possible(work):
        if way.machines == 1:
            yield from ((way, (unit,)) for unit in demand_.units(way.kind))


def _played(demand_, order, places):
    calendars: dict[Unit, Calendar] = {}
    placements = []
    for work, place in zip(order, places, strict=True):
        if place is None:
            continue
        way, units = place
        there = [calendars.setdefault(unit, Calendar(demand_, unit)) for unit in units]
        start_s = together_s(there, demand_.works[work], way)
        if start_s + way.duration_s > demand_.works[work].deadline_s:
            return None
        placements.append(Placement(work, way, units, start_s))
        for calendar in there:
            calendar.take(placements[-1])
    return Schedule(demand_, tuple(placements))


@st.composite
def tenants(draw, most=5):
    kinds = (
        MachineKind("small", draw(st.integers(1, 4)), 2, 4),
        MachineKind("large", draw(st.integers(0, 3)), 4, 8, 1.0),
    )
    found = []
    for number in range(draw(st.integers(1, most))):
        offers = {
            Offer(draw(st.integers(0, 1)), draw(st.integers(1, 5)), draw(st.booleans()))
            for _ in range(draw(st.integers(1, 3)))
        }
        kept = tuple(sorted(offers, key=lambda one: (one.kind, one.ranks, one.together)))
        found.append(Tenant(f"job{number}", draw(st.integers(0, 2)), kept))
    return Tenants(tuple(found), kinds)


def fewest(all_: Tenants) -> tuple[int, int]:
    """Jobs without room and machines, by trying everything."""
    units = [Unit(k, n) for k, kind in enumerate(all_.kinds) for n in range(kind.count)]
    best = [(len(all_.tenants), 0)]

    def place(index, left, linked, out):
        if index == len(all_.tenants):
            used = sum(
                left[unit] != (all_.kinds[unit.kind].ranks, all_.kinds[unit.kind].memory_bytes)
                for unit in units
            )
            best[0] = min(best[0], (out, used))
            return
        if out > best[0][0]:
            return
        tenant = all_.tenants[index]
        for offer in tenant.offers:
            of_kind = [unit for unit in units if unit.kind == offer.kind]
            for parts in _divisions(offer, of_kind):
                after = dict(left)
                for unit, ranks in parts:
                    free, memory = after[unit]
                    after[unit] = (free - ranks, memory - ranks * tenant.memory_bytes)
                there = {unit for unit, _ in parts}
                clash = not offer.together and there & linked
                if not clash and all(min(pair) >= 0 for pair in after.values()):
                    place(index + 1, after, linked | (set() if offer.together else there), out)
        place(index + 1, left, linked, out + 1)

    whole = {u: (all_.kinds[u.kind].ranks, all_.kinds[u.kind].memory_bytes) for u in units}
    place(0, whole, set(), 0)
    return best[0]


def _divisions(offer, units):
    if offer.together:
        yield from ([(unit, offer.ranks)] for unit in units)
        return
    for counts in product(range(offer.ranks + 1), repeat=len(units)):
        if sum(counts) == offer.ranks:
            yield [(unit, count) for unit, count in zip(units, counts, strict=True) if count]
