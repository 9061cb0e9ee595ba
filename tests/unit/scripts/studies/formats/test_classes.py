"""Which classes of optimizers get formats by default."""

import math

import pytest

from scripts.studies.formats.classes import CLASSES, decisions, page
from scripts.studies.formats.noninferior import Difference
from scripts.studies.formats.report import Verdict
from scripts.studies.formats.study import (
    DECIDING,
    HABITS,
    LARGER,
    REPLACED,
    SMALL,
    STUDIES,
    Setting,
)


def verdict(mean=0.0, *, fine=True, worse=False, deviation=0.001):
    return Verdict(Difference(mean, deviation, 8, 0.01), 2.0, fine, worse)


def settings_of(optimizer, small=4, larger=1):
    tasks = [*SMALL.margins][:1] * small + [*LARGER.margins][:1] * larger
    return [Setting(task, optimizer, 0.1 * (i + 1)) for i, task in enumerate(tasks)]


def decided(verdicts, optimizer="muon", larger=1):
    settings = settings_of(optimizer, len(verdicts) - larger, larger)
    return decisions(dict(zip(settings, verdicts, strict=True)))[CLASSES[optimizer]]


def test_four_of_five_settings_and_every_larger_one_have_to_be_fine():
    fine, open_ = verdict(), verdict(fine=False)
    assert decided([fine] * 5).by_default
    assert decided([open_, fine, fine, fine, fine]).by_default
    assert not decided([open_, open_, fine, fine, fine]).by_default
    assert not decided([fine, fine, fine, fine, open_]).by_default


def test_a_class_without_a_larger_task_stays_exact():
    assert not decided([verdict()] * 5, larger=0).by_default
    assert not decisions({})["momentum"].by_default


@pytest.mark.parametrize(
    "bad",
    [
        verdict(worse=True),
        verdict(0.006),
        verdict(math.inf, fine=False),
    ],
)
def test_one_that_is_harmed_keeps_its_class_exact(bad):
    assert not decided([bad, *[verdict()] * 9]).by_default


def test_a_large_mean_that_chance_explains_does_not():
    assert decided([verdict(0.006, deviation=0.05), *[verdict()] * 4]).by_default


def test_diverged_settings_say_nothing_and_classes_do_not_mix():
    found = dict.fromkeys(settings_of("sgd"))
    found |= {setting: verdict() for setting in settings_of("adamw")}
    said = decisions(found)
    assert said["momentum"].settings == 0
    assert said["adaptive"].settings == 5
    text = page(found)
    assert "| adaptive | 5 | 5 | 1 of 1 | 0 | 0 | 0 | formats |" in text
    assert "| momentum | 0 | 0 | 0 of 0 | 0 | 0 | 0 | exact |" in text


def test_a_class_with_settings_to_come_is_not_decided():
    found = {setting: verdict() for setting in settings_of("adamw")}
    said = decisions(found, [Setting("text", "sgd", 0.5), Setting("text", "adamw", 0.5)])
    assert (said["adaptive"].to_come, said["momentum"].to_come) == (1, 1)
    assert not said["adaptive"].by_default
    assert decisions(found, [Setting("text", "sgd", 0.5)])["adaptive"].by_default


@pytest.mark.parametrize("task", REPLACED)
def test_a_task_that_was_replaced_says_nothing(task):
    found = {setting: verdict() for setting in settings_of("adamw")}
    found[Setting(task, "adamw", 0.001)] = verdict(fine=False)
    assert decisions(found)["adaptive"].settings == 5
    assert decisions(found)["adaptive"].by_default


def test_every_optimizer_of_the_studies_has_a_class_but_where_they_decide_nothing():
    assert HABITS not in DECIDING
    for study in STUDIES.values():
        for rates in study.rates.values():
            assert rates.keys() - CLASSES.keys() <= ({"adafactor"} if study is HABITS else set())
