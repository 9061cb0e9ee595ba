"""Budgets of CP-SAT."""

from deft_horovod.capacity.schedule.budget import Budget, spent
from deft_horovod.solver.cp_sat import cp_model


def test_a_share_of_a_budget_is_a_budget():
    solver = Budget(10.0).share(0.25).solver()
    assert solver.parameters.max_deterministic_time == 2.5
    assert solver.parameters.num_workers == 1


def test_what_was_spent_is_no_more_than_there_was():
    model = cp_model.CpModel()
    flags = [model.new_bool_var("") for _ in range(30)]
    model.add(sum(flags) >= 7)
    model.minimize(sum(number * flag for number, flag in enumerate(flags)))
    solver = Budget(1.0).solver()
    assert solver.solve(model) == cp_model.OPTIMAL
    assert 0.0 < spent(solver) <= 1.1
