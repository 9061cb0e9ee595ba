"""The page on harm."""

from scripts.studies.judge.arms import ARMS
from scripts.studies.judge.page import page
from scripts.studies.judge.run import PAGE, REPORT, kept, loss_of
from scripts.studies.judge.study import Setting, rate_runs, settings_of, study_runs
from scripts.studies.judge.training import Run

SETTINGS = [Setting("text", "sgd", 0.5), Setting("denoising", "adamw", 0.004)]


def _outcomes():
    found = {}
    for setting in SETTINGS:
        for number, arm in enumerate(ARMS):
            for seed in (1, 2, 3):
                run = Run(setting.task, setting.optimizer, setting.lr, arm, seed)
                loss = 2.0 + 0.005 * number + 1e-4 * seed * number
                names = ("whole", "layers", "worst", "noise", "along", "rest")
                found[run] = {
                    "losses": [loss] * 20,
                    "errors": [dict.fromkeys(names, 0.1 * number)],
                    "statistics": {
                        "own_square": [4.0] * 10,
                        "average_square": [1.0] * 10,
                        "change_square": [3.0] * 10,
                    },
                    "late_share": 1.0 if "late" in arm else 0.0,
                }
    return found


def _rows(text):
    """By what they begin with."""
    return {line.split(" | ")[0][2:]: line for line in text.splitlines() if line.startswith("| ")}


def test_it_has_every_arm_and_marks_what_is_harmful():
    text = page(_outcomes(), SETTINGS)
    losses, errors = text.split("## What gradients were wrong by")
    rows = _rows(losses)
    assert set(ARMS) - {"exact"} <= rows.keys()
    assert _rows(errors)["int8"] == "| int8 | 20 | 20 |"
    assert "diverged" not in text
    assert "**" in rows["late, uncorrected"]
    assert "**" not in rows["int8"]
    assert "denoising, adamw 0.004 (held out)" in rows["arm"]
    assert "| 1.00 | 1.00 | 1.00 | 1.00 |" in _rows(errors)["error / gradient, of all parameters"]


def test_settings_that_are_not_of_the_study_are_left_out():
    assert "denoising" not in page(_outcomes(), SETTINGS[:1])


def test_the_page_is_made_of_the_data():
    rates = {run: loss_of(one) for run, one in kept(REPORT / "rates.json").items()}
    settings, found = settings_of(rates), kept(REPORT / "study.json")
    assert rates.keys() == set(rate_runs())
    assert found.keys() <= set(study_runs(settings))
    assert page(found, settings) == (REPORT / PAGE).read_text("utf-8")
