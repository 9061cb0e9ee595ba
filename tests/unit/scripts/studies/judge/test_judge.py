"""How well scores tell harm."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.studies.formats.noninferior import Difference
from scripts.studies.judge.judge import (
    WORST,
    Trial,
    by_setting,
    ceiling,
    correlation,
    limit,
    vetoes,
)
from scripts.studies.judge.study import Setting

MARGIN = 0.01
FIRST, SECOND = Setting("text", "sgd", 0.5), Setting("text", "muon", 0.05)


def _trial(harm, score, setting=FIRST, deviation=1e-4):
    difference = Difference(harm * math.log1p(MARGIN), deviation, 5, MARGIN)
    return Trial(setting, "int8", difference, {} if score is None else {"whole": score})


def test_harm_is_counted_in_margins_and_has_a_verdict():
    verdicts = {harm: _trial(harm, 1.0).verdict for harm in (0.0, 0.5, 2.0)}
    assert verdicts == {0.0: "harmless", 0.5: "harmless", 2.0: "harmful"}
    assert _trial(2.0, 1.0).harm == pytest.approx(2.0)
    assert _trial(0.5, 1.0, deviation=0.05).verdict == "not decided"
    assert _trial(2.0, 1.0, deviation=0.05).verdict == "not decided"


def test_a_run_that_diverged_is_harmful():
    lost = Trial(FIRST, "late", Difference(math.inf, 0.0, 5, MARGIN), {"whole": 1.0})
    assert lost.harm == WORST
    assert lost.verdict == "harmful"


@given(st.lists(st.integers(0, 50), min_size=3, max_size=20, unique=True))
def test_a_judge_that_ranks_as_harm_does_correlates_wholly(harms):
    assert correlation([_trial(h, h**3 + 1.0) for h in harms], "whole") == pytest.approx(1.0)
    assert correlation([_trial(h, -h) for h in harms], "whole") == pytest.approx(-1.0)


def test_settings_count_by_themselves():
    def whole(trials):
        return correlation(trials, "whole")

    low = [_trial(h, h) for h in (1.0, 2.0, 3.0)]
    high = [_trial(h, h - 10.0, SECOND) for h in (4.0, 5.0, 6.0)]
    assert by_setting(low + high, whole) == pytest.approx(1.0)
    assert correlation(low + high, "whole") < 0.0


def test_only_those_with_a_score_are_judged():
    known = [_trial(h, h) for h in (1.0, 2.0, 3.0)]
    assert correlation([*known, _trial(9.0, None)], "whole") == pytest.approx(1.0)
    assert math.isnan(correlation(known[:2], "whole"))


@given(
    st.lists(st.floats(1.5, 9.0), min_size=1, max_size=30),
    st.lists(st.floats(0.0, 0.5), max_size=30),
)
def test_at_the_limit_nine_of_ten_harmful_arms_are_vetoed_and_no_more_than_needed(bad, good):
    trials = [_trial(harm, harm) for harm in bad + good]
    at = limit(trials, "whole")
    found = vetoes(trials, "whole", at)
    assert found.harmful == len(bad)
    assert found.harmful_vetoed >= 0.9 * len(bad)
    assert found.harmless_vetoed == 0  # all of them score lower
    higher = vetoes(trials, "whole", math.nextafter(at, math.inf))
    assert higher.harmful_vetoed < 0.9 * len(bad) or found.harmful_vetoed == higher.harmful_vetoed


def test_where_nothing_is_harmful_nothing_is_vetoed():
    trials = [_trial(0.0, 5.0)]
    assert limit(trials, "whole") == math.inf
    assert vetoes(trials, "whole", math.inf).texts == ("0 of 0", "0 of 1")


def test_what_noise_leaves_to_reach_is_all_where_halves_of_the_seeds_agree():
    agreed = [replace(_trial(h, h), halves=(h, 2.0 * h)) for h in (1.0, 2.0, 3.0, 4.0)]
    assert ceiling(agreed) == pytest.approx(1.0)
    swapped = [replace(agreed[0], halves=(3.0, 2.0)), *agreed[1:]]
    assert 0.0 < ceiling(swapped) < 1.0
    against = [replace(trial, halves=(h, -h)) for h, trial in enumerate(agreed)]
    assert math.isnan(ceiling(against))
    assert math.isnan(ceiling([_trial(h, h) for h in (1.0, 2.0, 3.0)]))  # no halves are known


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 2.0))
@settings(max_examples=20)
def test_it_is_what_the_true_harm_reaches(seed, noise):
    """True harm against the mean of two noisy halves."""
    random = np.random.default_rng(seed)
    true = random.normal(size=4_000)
    seen = true + noise * random.normal(size=(2, true.size))
    noisy = [
        replace(_trial(mean, t), halves=(a, b))
        for t, mean, a, b in zip(true, seen.mean(0), *seen, strict=True)
    ]
    assert ceiling(noisy) == pytest.approx(correlation(noisy, "whole"), abs=0.05)
