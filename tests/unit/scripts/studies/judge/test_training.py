"""What is measured while gradients travel as an arm says."""

import functools
import math
from dataclasses import replace

import pytest

from scripts.studies.convergence.lateness import Arm as Late
from scripts.studies.convergence.training import first_late
from scripts.studies.judge.arms import ARMS, EXACT_ARM, NULL
from scripts.studies.judge.tasks import LARGE
from scripts.studies.judge.training import PROBE_EVERY, Run, Training


@functools.cache
def _trained(arm, task="text", optimizer="adamw", lr=0.01):
    return Training(Run(task, optimizer, lr, arm, seed=1)).train()


def _mean(outcome, name):
    return sum(probe[name] for probe in outcome.errors) / len(outcome.errors)


def test_runs_repeat_bit_for_bit(short):
    del short
    run = Run("text", "adamw", 0.01, "half late, the rest int4", seed=1)
    assert Training(run).train() == _trained(run.arm)


@pytest.mark.parametrize("arm", ARMS)
def test_each_arm_trains_and_is_measured(short, arm):
    del short
    outcome = _trained(arm)
    assert len(outcome.losses) == 20
    assert all(map(math.isfinite, outcome.losses))
    assert bool(outcome.statistics) == (arm == EXACT_ARM)
    if arm != EXACT_ARM:
        assert len(outcome.errors) == 80 // PROBE_EVERY
        assert all(math.isfinite(value) for probe in outcome.errors for value in probe.values())


def test_other_sums_are_wrong_by_nothing_but_rounding(short):
    del short
    assert 0.0 < _mean(_trained(NULL), "whole") < 1e-5


def test_coarser_formats_are_wrong_by_more_and_feedback_keeps_what_is_lost(short):
    del short
    fine, coarse, lost = (_trained(arm) for arm in ("int8", "int4", "int4, no feedback"))
    assert 0.0 < _mean(fine, "whole") < 0.1 * _mean(coarse, "whole")
    assert _mean(coarse, "rest") > 0.0
    assert _mean(lost, "rest") == 0.0


def test_an_update_that_is_in_time_is_wrong_by_nothing(short, monkeypatch):
    del short
    arms = {**ARMS, "never late": replace(ARMS["late"], late=Late(-1, warmup=1000))}
    monkeypatch.setattr("scripts.studies.judge.training.ARMS", arms)
    assert _mean(_trained("never late"), "whole") == 0.0


def test_a_prediction_is_wrong_by_less_than_no_prediction(short):
    del short
    predicted, plain = (_trained(arm, "text", "sgd", 0.1) for arm in ("late", "late, uncorrected"))
    assert 0.0 < _mean(predicted, "whole") < _mean(plain, "whole")


def test_late_updates_without_any_change_of_parameters_are_wrong_by_nothing(short):
    del short
    assert _mean(_trained("late, uncorrected", "text", "sgd", 0.0), "whole") == 0.0


def test_parts_are_late_as_the_arm_says(short):
    del short
    shares = [
        _trained(arm).late_share for arm in ("int8", "first layer late", "half late, the rest int4")
    ]
    assert shares[0] == 0.0 < shares[1] < shares[2] < _trained("late").late_share == 1.0


def test_updates_may_be_late_once_the_rate_is_low():
    task = LARGE
    begin = first_late(Late(-1, below=0.5), task.steps, task.schedule)
    assert task.schedule(begin / task.steps) <= 0.5 < task.schedule((begin - 1) / task.steps)
    assert first_late(Late(-1), task.steps, task.schedule) == Late.warmup
    assert first_late(Late(-1, below=0.0), task.steps, task.schedule) == task.steps
