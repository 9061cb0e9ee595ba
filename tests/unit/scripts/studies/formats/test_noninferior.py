"""Tests of non-inferiority find what is there, and seldom what is not."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scripts.studies.formats.noninferior import Difference, difference, holm, seeds_needed

MARGIN = 0.01


def drawn(mean, deviation, seeds, trials):
    generator = torch.Generator().manual_seed(1)
    noise = deviation * torch.randn(trials, seeds, generator=generator, dtype=torch.float64) + mean
    return [Difference(float(row.mean()), float(row.std()), seeds, MARGIN) for row in noise]


def test_an_arm_that_is_worse_by_the_margin_passes_as_seldom_as_the_level_says():
    found = [one.p_value < 0.05 for one in drawn(math.log1p(MARGIN), 0.004, 5, 4000)]
    assert sum(found) / len(found) == pytest.approx(0.05, abs=0.012)


def test_as_many_seeds_as_are_needed_give_the_power():
    seeds = seeds_needed(0.004, MARGIN, 0.05, 0.9)
    found = [one.p_value < 0.05 for one in drawn(0.0, 0.004, seeds, 4000)]
    assert 0.88 < sum(found) / len(found) < 0.99
    fewer = [one.p_value < 0.05 for one in drawn(0.0, 0.004, seeds - 1, 4000)]
    assert sum(fewer) / len(fewer) < 0.91


def test_harm_is_found_where_it_is():
    assert all(one.p_value_of_harm < 0.01 for one in drawn(0.05, 0.002, 5, 200))
    clean = [one.p_value_of_harm < 0.05 for one in drawn(0.0, 0.004, 5, 4000)]
    assert sum(clean) / len(clean) == pytest.approx(0.05, abs=0.012)


def test_seeds_are_paired_and_divergence_counts_as_harm():
    exact = {1: 2.0, 2: 4.0, 3: 1.0}
    found = difference({1: 2.02, 2: 4.04, 9: 7.0}, exact, MARGIN)
    assert found.seeds == 2
    assert found.mean == pytest.approx(math.log(1.01))
    assert found.deviation == pytest.approx(0.0, abs=1e-12)
    lost = difference({1: 2.0, 2: math.inf}, exact, MARGIN)
    assert (lost.p_value, lost.p_value_of_harm) == (1.0, 0.0)
    assert difference({1: 2.0, 2: 2.0}, {1: 2.0, 2: math.inf}, MARGIN) is None
    assert difference({1: 2.0}, exact, MARGIN) is None


def test_without_any_scatter_the_mean_decides():
    assert Difference(0.0, 0.0, 3, MARGIN).p_value == 0.0
    assert Difference(0.02, 0.0, 3, MARGIN).p_value == 1.0
    assert Difference(0.0, 0.0, 3, MARGIN).p_value_of_harm == 1.0


@given(st.lists(st.floats(0.0, 1.0), max_size=12), st.floats(0.001, 0.5))
def test_holm_lies_between_bonferroni_and_no_correction(p_values, level):
    rejected = holm(p_values, level)
    for p, out in zip(p_values, rejected, strict=True):
        if p <= level / len(p_values):
            assert out
        if out:
            assert p <= level
    # Nothing is kept that is less likely than something rejected.
    worst = max((p for p, out in zip(p_values, rejected, strict=True) if out), default=-1.0)
    assert all(out or p >= worst for p, out in zip(p_values, rejected, strict=True))


def test_holm_by_hand():
    assert holm([0.04, 0.01, 0.02], 0.05) == [True, True, True]
    assert holm([0.04, 0.03, 0.01], 0.05) == [False, False, True]


def test_hypotheses_that_are_to_be_tested_yet_make_it_harder():
    assert holm([0.02, 0.04], 0.05) == [True, True]
    assert holm([0.02, 0.04], 0.05, untested=1) == [False, False]
    assert holm([0.012, 0.024], 0.05, untested=2) == [True, False]
    assert holm([], 0.05, untested=2) == []
