"""Machines in words."""

from deft_horovod.capacity.answer.units import units_text
from deft_horovod.capacity.problem.demand import Unit
from tests.unit.support.capacity.demands import OWN


def test_runs_of_machines_are_shortened():
    units = [Unit(0, number) for number in (4, 0, 1, 2, 6)]
    assert units_text([OWN], units) == "own 1-3, 5, 7"
    assert units_text([OWN], units[:1]) == "own 5"
