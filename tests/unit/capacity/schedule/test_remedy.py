"""Remedies: what would meet a missed job, and what that costs."""

from fractions import Fraction

from deft_horovod.capacity.problem.machine_kind import MachineKind
from deft_horovod.capacity.schedule.hybrid import hybrid
from deft_horovod.capacity.schedule.remedy import remedies
from tests.unit.support.capacity.demands import demand, job

OWN = MachineKind("own", 1, 1, 8)
RENTED = MachineKind("rented", 1, 1, 8, 3.6, 60)


def test_the_cheaper_change_comes_first():
    ways = ((0, 1, 1, 900), (1, 1, 1, 900))
    schedule = hybrid(demand(*(job(str(n), 1_000, ways) for n in range(3)), kinds=(OWN, RENTED)))
    (missed,) = schedule.missed
    later, more = remedies(schedule, missed)
    assert (later.deadline_s, later.kind, later.rent) == (1_800, None, 0)
    # One more to rent comes before one to buy, though that costs no rent.
    assert (more.deadline_s, more.kind, more.machines) == (None, 1, 1)
    assert more.rent == Fraction(96, 100)


def test_more_machines_are_paid_for():
    works = [job(str(n), 1_000, ((1, 1, 1, 900),)) for n in range(2)]
    schedule = hybrid(demand(*works, kinds=(OWN, RENTED)))
    found = remedies(schedule, schedule.missed[0])
    assert [one.kind for one in found] == [None, 1]
    # Later on the rented machine: 900 s more; on another one: its start-up too.
    assert [one.rent for one in found] == [Fraction(9, 10), Fraction(96, 100)]


def test_too_slow_everywhere_is_helped_by_a_later_deadline_alone():
    schedule = hybrid(demand(job(deadline_s=10), kinds=(OWN,)))
    (later,) = remedies(schedule, 0)
    assert later.deadline_s == 1_000
