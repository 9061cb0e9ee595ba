"""Which runs the study is made of."""

from collections import Counter

from deft_horovod.base.wire_format import EXACT
from scripts.studies.formats.study import (
    COLOURS,
    HABITS,
    LARGER,
    REPEATED,
    SMALL,
    STUDIES,
    Setting,
    best_settings,
    pilot_runs,
    rate_runs,
    study_runs,
)
from scripts.studies.formats.tasks import TASKS


def settings():
    return best_settings({run: abs(run.lr - 0.05) for run in rate_runs()})


def test_each_optimizer_trains_each_task_at_its_best_rate_and_at_twice_that():
    found = settings()
    assert len(found) == 2 * 3 * len(SMALL.margins)
    assert Setting("text", "sgd", 0.05) in found
    assert Setting("text", "sgd", 0.1) in found
    assert Setting("photos", "adamw", 0.02) in found


def test_pilot_and_study_have_no_seed_in_common_and_arms_share_theirs():
    found = settings()
    runs = study_runs(found, {"text": 2, "photos": 4})
    assert not {run.seed for run in runs} & {*SMALL.pilot_seeds, rate_runs()[0].seed}
    seeds = Counter((Setting.of(run), run.format) for run in runs)
    for setting in found:
        wanted = {"text": 2, "photos": 4}[setting.task]
        assert {seeds[setting, one] for one in (EXACT, *SMALL.arms)} == {wanted}
    assert len(set(runs)) == len(runs)
    # A study that is cut short has whole seeds.
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    assert {Setting.of(run) for run in pilot_runs(found)} == set(found[::2])


def test_the_repeated_study_has_seeds_of_its_own_and_the_rates_of_the_first():
    rates = {run: abs(run.lr - 0.05) for run in rate_runs()}
    found = best_settings(rates, REPEATED)
    assert Setting("text", "sgd", 0.05) in found
    assert Setting("text", "sgd", 0.025) in found
    runs = study_runs(found, dict.fromkeys(REPEATED.margins, REPEATED.seeds), REPEATED)
    assert len(runs) == 12 * 2 * REPEATED.seeds
    first = {run.seed for run in study_runs(settings(), {"text": 12, "photos": 12})}
    assert not {run.seed for run in runs} & {*first, *SMALL.pilot_seeds, rate_runs()[0].seed}
    assert (REPEATED.prefix, REPEATED.rates_prefix) == ("repeated-", SMALL.prefix)


def test_the_study_on_colours_knows_from_five_pairs_of_its_own_how_well_it_repeats():
    found = best_settings({run: run.lr for run in rate_runs(COLOURS)}, COLOURS)
    pilot = pilot_runs(found, COLOURS)
    assert {Setting.of(run) for run in pilot} == {*found}
    assert len(pilot) == 5 * 2 * len(found)
    runs = study_runs(found, dict.fromkeys(COLOURS.margins, COLOURS.seeds), COLOURS)
    assert not {run.seed for run in runs} & {run.seed for run in pilot}


def test_the_study_of_habits_has_seeds_of_its_own():
    found = best_settings({run: run.lr for run in rate_runs(HABITS)}, HABITS)
    assert {(s.task, s.optimizer) for s in found} == {
        ("dropping", "adamw"),
        ("dropping", "adafactor"),
        ("accumulating", "adamw"),
    }
    runs = study_runs(found, dict.fromkeys(HABITS.margins, HABITS.seeds), HABITS)
    others = {
        seed
        for study in STUDIES.values()
        if study is not HABITS
        for seed in range(study.first_seed, study.first_seed + max(study.seeds, 12))
    }
    assert not {run.seed for run in runs} & others


def test_every_task_has_rates_of_its_own_and_the_larger_ones_are_at_their_best():
    tasks = [task for study in STUDIES.values() if not study.rates_of for task in study.margins]
    assert sorted(tasks) == sorted(TASKS)
    assert all(set(study.rates) == set(study.margins) for study in STUDIES.values())
    runs = rate_runs(LARGER)
    found = best_settings({run: run.lr for run in runs}, LARGER)
    assert len(found) == 5
    assert {s.lr for s in found} == {0.0005, 0.005, 0.05, 0.001, 0.0001}
    seeds = dict.fromkeys(LARGER.margins, LARGER.seeds)
    assert len(study_runs(found, seeds, LARGER)) == 5 * 2 * LARGER.seeds
