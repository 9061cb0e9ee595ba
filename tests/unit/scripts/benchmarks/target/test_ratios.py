"""scripts/benchmarks/target/ratios.py: means of ratios, and how certain they are."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.benchmarks.target.ratios import as_more, in_words, mean_of, trimmed

RATIOS = st.lists(st.floats(0.1, 10.0), min_size=2, max_size=12)


@given(RATIOS)
def test_the_mean_is_inside_and_the_other_way_round_it_is_its_inverse(ratios):
    mean, inverse = mean_of(ratios), mean_of([1.0 / ratio for ratio in ratios])
    assert min(ratios) <= mean.value * (1.0 + 1e-9)
    assert mean.value <= max(ratios) * (1.0 + 1e-9)
    assert mean.low <= mean.value * (1.0 + 1e-9)
    assert inverse.value == pytest.approx(1.0 / mean.value)
    assert inverse.low == pytest.approx(1.0 / mean.high)


def test_the_interval_is_students():
    mean = mean_of([math.exp(x) for x in (-1.0, 0.0, 1.0)])  # of a mean of 3: 4.303 errors
    assert mean.value == pytest.approx(1.0)
    assert math.log(mean.high) == pytest.approx(4.303 / math.sqrt(3.0), abs=1e-3)


def test_the_largest_and_the_smallest_do_not_count():
    assert trimmed([9.0, 2.0, 0.1, 2.0]) == pytest.approx(2.0)
    assert trimmed([1.0, 2.0, 3.0]) is None


def test_one_seed_has_no_interval():
    assert in_words([1.5]) == "1.50"
    assert mean_of([1.5]).high == math.inf
    assert in_words([2.0, 2.0]) == "2.00 (2.00 .. 2.00)"


def test_ratios_may_be_told_by_what_they_are_above_one():
    assert in_words([1.25], as_more) == "+25.0%"
    assert in_words([0.5, 0.5], as_more) == "-50.0% (-50.0% .. -50.0%)"
