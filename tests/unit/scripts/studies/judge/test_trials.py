"""Runs as trials."""

import math
from dataclasses import replace

import pytest

from scripts.studies.judge.judge import WORST, correlation
from scripts.studies.judge.probe import Error
from scripts.studies.judge.training import Run
from scripts.studies.judge.trials import MEASURED, TURN, trials

RUN = Run("text", "sgd", 0.5, "exact", 1)
STATISTICS = {"own_square": [4.0] * 10, "average_square": [1.0] * 10, "change_square": [3.0] * 10}


def _outcome(loss, error=0.1, late_share=0.0):
    probe = dict.fromkeys(Error.__dataclass_fields__, error)
    return {
        "losses": [loss] * 20,
        "errors": [probe, probe],
        "statistics": STATISTICS,
        "late_share": late_share,
    }


def _outcomes(arm, losses, **about):
    exact = {replace(RUN, seed=s): _outcome(2.0) for s in range(len(losses))}
    runs = {replace(r, arm=arm): _outcome(x, **about) for r, x in zip(exact, losses, strict=True)}
    return {**exact, **runs}


def test_an_arm_is_compared_with_exact_training_of_the_same_seeds():
    (trial,) = trials(_outcomes("int8", [2.2, 2.4]))
    assert trial.arm == "int8"
    assert trial.difference.mean == pytest.approx((math.log(1.1) + math.log(1.2)) / 2)
    assert trial.difference.margin == 0.01
    assert trial.scores == dict.fromkeys(MEASURED, pytest.approx(0.1))


def test_halves_of_the_seeds_say_each_what_harm_is():
    (trial,) = trials(_outcomes("int8", [2.0 * 1.01, 2.0, 2.0 * 1.01**3, 2.0]))
    assert trial.halves == (pytest.approx(2.0), pytest.approx(0.0))
    assert trial.harm == pytest.approx(sum(trial.halves) / 2)
    (lost,) = trials(_outcomes("int8", [2.0, math.inf]))
    assert lost.halves == (0.0, WORST)


def test_seeds_that_only_one_of_them_has_do_not_count():
    outcomes = _outcomes("int8", [2.2, 2.4])
    outcomes[replace(RUN, seed=9, arm="int8")] = _outcome(9.0)
    assert trials(outcomes)[0].difference.seeds == 2
    assert trials(_outcomes("int8", [2.2])) == []  # one is not enough


def test_the_turn_judges_what_is_late_and_not_rounded():
    assert TURN not in trials(_outcomes("int8", [2.2, 2.4]))[0].scores
    assert (
        TURN not in trials(_outcomes("int8, late below 0.75", [2.0, 2.0], late_share=1.0))[0].scores
    )
    scores = [
        trials(_outcomes(arm, [2.0, 2.0], late_share=share))[0].scores[TURN]
        for arm, share in (("first layer late", 0.1), ("late", 1.0), ("late, uncorrected", 1.0))
    ]
    assert 0.0 < scores[0] < scores[1] < scores[2]


def test_a_gradient_that_is_no_number_is_as_wrong_as_can_be():
    found = trials(_outcomes("late", [3.0, 3.0], error=math.nan, late_share=1.0))
    assert found[0].scores["whole"] == math.inf
    assert math.isnan(correlation(found, "whole"))
