"""Which runs there are."""

from collections import Counter

from scripts.studies.judge.arms import ARMS
from scripts.studies.judge.study import Setting, exact_of, rate_runs, settings_of, study_runs


def test_the_large_task_is_trained_at_its_best_rates():
    losses = {run: abs(run.lr - 0.015) for run in rate_runs()}
    large = {s.optimizer: s.lr for s in settings_of(losses) if s.task == "large gpt"}
    assert large == {"adamw95": 0.002, "muon": 0.01}


def test_without_rates_the_small_tasks_are_there():
    settings = settings_of({})
    assert len(settings) == len(set(settings)) == 8
    assert {s.task for s in settings} == {"text", "colouring", "denoising"}


def test_all_arms_of_a_setting_have_the_same_seeds_and_the_first_seeds_come_first():
    runs = study_runs(settings_of({run: run.lr for run in rate_runs()}))
    assert len(set(runs)) == len(runs)
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    counts = Counter((Setting.of(run), run.arm) for run in runs)
    assert all(number == setting.seeds for (setting, _), number in counts.items())
    assert Counter(setting for setting, _ in counts).values()
    assert set(Counter(setting for setting, _ in counts).values()) == {len(ARMS)}
    assert all(exact_of(run) in runs for run in runs)


def test_a_setting_names_its_workers_only_where_they_are_not_four():
    assert Setting("text", "sgd", 0.5).title == "text, sgd 0.5"
    assert Setting("text", "sgd", 0.5, 16).title == "text, sgd 0.5, 16 workers"
