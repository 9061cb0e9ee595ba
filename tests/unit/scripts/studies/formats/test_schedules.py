"""Schedules of the learning rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.studies.formats.schedules import (
    constant,
    dropping,
    half_cosine,
    warmup_stable_decay,
)


@given(st.floats(0.0, 0.999))
def test_rates_are_positive_and_never_above_the_best(done):
    for schedule in (constant, dropping, half_cosine, warmup_stable_decay):
        assert 0.0 < schedule(done) <= 1.0


def test_they_do_what_they_are_called():
    assert constant(0.0) < constant(0.02) < constant(0.04) < constant(0.06) == constant(0.99) == 1.0
    assert warmup_stable_decay(0.79) == 1.0
    assert warmup_stable_decay(0.9) == pytest.approx(0.5)
    assert warmup_stable_decay(0.999) < 0.01
    assert [dropping(d) for d in (0.5, 0.7, 0.9)] == pytest.approx([1.0, 0.1, 0.01])
    assert half_cosine(0.5) == pytest.approx(0.5)
    assert half_cosine(0.999) < 1e-5
