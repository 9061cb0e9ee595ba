from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.study import (
    SYNCHRONOUS,
    best_rates,
    final_arms,
    final_runs,
    key,
    rate_runs,
    screen_runs,
)

BEST = {("mlp", "sgd"): 0.1, ("cnn", "adamw"): 0.01, ("cnn", "sgd"): 0.05}


def test_the_best_rate_is_that_of_the_smallest_loss():
    runs = [run for run in rate_runs(["mlp"]) if run.optimizer == "sgd"]
    losses = {run: abs(run.lr - 0.2) for run in runs}
    assert best_rates(losses) == {("mlp", "sgd"): 0.2}


def test_every_setting_has_a_synchronous_run():
    for runs in (screen_runs(BEST), final_runs(BEST, [1, 2])):
        settings = {(r.task, r.optimizer, r.lr, r.workers, r.seed) for r in runs}
        bases = {
            (r.task, r.optimizer, r.lr, r.workers, r.seed) for r in runs if r.arm == SYNCHRONOUS
        }
        assert settings == bases
        assert len(runs) == len(set(runs)) == len({key(run) for run in runs})


def test_seeds_come_one_after_the_other():
    seeds = [run.seed for run in final_runs(BEST, [1, 2, 3])]
    assert seeds == sorted(seeds)


def test_merged_updates_go_faster_where_the_optimizer_adapts():
    merged = [arm for arm in final_arms("adamw") if arm.merge > 1 and arm.correction == "local"]
    assert merged == [Arm(-1, 1, 4, "local", partial=True, power=1.0)]
    assert all(arm.power == 0.0 for arm in final_arms("sgd"))
