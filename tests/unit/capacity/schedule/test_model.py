"""The constraint model, alone and around what is fixed."""

from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.rules import broken_rules
from deft_horovod.capacity.schedule.budget import Budget
from deft_horovod.capacity.schedule.hybrid import hybrid
from deft_horovod.capacity.schedule.model import ScheduleModel
from deft_horovod.solver.cp_sat import cp_model
from tests.unit.support.capacity.demands import demand, job

WAYS = ((0, 1, 1, 900), (1, 1, 1, 900))


def solved(model):
    solver = Budget(2.0).solver()
    assert solver.solve(model.model) == cp_model.OPTIMAL
    return model.schedule(solver), solver


def test_rent_is_that_of_the_schedule():
    asked = demand(*(job(str(n), deadline_s=1_000, ways=WAYS) for n in range(4)))
    model = ScheduleModel(asked, [*asked.units(0), *asked.units(1)])
    model.minimize_rent(0)
    found, solver = solved(model)
    assert model.money(solver.objective_value) == found.rent
    assert broken_rules(found) == []


def test_fixed_jobs_stay():
    asked = demand(*(job(str(n), deadline_s=1_000, ways=WAYS) for n in range(4)))
    start = hybrid(asked)
    fixed = [one for one in start.placements if one.way.kind == 0]
    model = ScheduleModel(asked, [Unit(0, 0), Unit(1, 0)], fixed)
    model.minimize_rent(0)
    model.hint(start)
    found, _ = solved(model)
    assert set(fixed) <= set(found.placements)
    assert found.rent == start.rent


def test_as_few_as_possible_are_missed():
    asked = demand(*(job(str(n), deadline_s=1_000, ways=WAYS) for n in range(4)))
    model = ScheduleModel(asked, asked.units(0))
    model.minimize_missed()
    found, solver = solved(model)
    assert len(found.missed) == solver.objective_value == 2
