"""Kinds of machines: what is billed."""

from fractions import Fraction

from deft_horovod.capacity.problem.machine_kind import MachineKind


def test_what_has_begun_is_paid_whole():
    kind = MachineKind("large", 3, 8, 64, price_per_hour=6.5, billed_s=3600)
    assert (kind.billed_units(1), kind.billed_units(3600), kind.billed_units(3601)) == (1, 1, 2)
    assert kind.rent_parts(3601) == Fraction(2 * 65_000)
    assert not kind.is_own


def test_by_the_second_a_part_of_an_hour_costs_that_part():
    kind = MachineKind("small", 3, 8, 64, price_per_hour=3.6)
    assert kind.rent_parts(100) == Fraction(1_000)


def test_own_machines_cost_nothing():
    kind = MachineKind("lab", 3, 8, 64)
    assert kind.is_own
    assert kind.rent_parts(10_000) == 0
