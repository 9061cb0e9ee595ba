"""Which runs the study is made of."""

from collections import Counter

from deft_horovod.base.wire_format import EXACT
from scripts.studies.formats.study import (
    ARMS,
    MARGINS,
    PILOT_SEEDS,
    RATES,
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
    assert set(MARGINS) == set(TASKS)
    found = settings()
    assert len(found) == 2 * len(RATES) * len(TASKS)
    assert Setting("text", "sgd", 0.05) in found
    assert Setting("text", "sgd", 0.1) in found
    assert Setting("photos", "adamw", 0.02) in found


def test_pilot_and_study_have_no_seed_in_common_and_arms_share_theirs():
    found = settings()
    runs = study_runs(found, {"text": 2, "photos": 4})
    assert not {run.seed for run in runs} & {*PILOT_SEEDS, rate_runs()[0].seed}
    seeds = Counter((Setting.of(run), run.format) for run in runs)
    for setting in found:
        wanted = {"text": 2, "photos": 4}[setting.task]
        assert {seeds[setting, one] for one in (EXACT, *ARMS)} == {wanted}
    assert len(set(runs)) == len(runs)
    # A study that is cut short has whole seeds.
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    assert {Setting.of(run) for run in pilot_runs(found)} == set(found[::2])
