"""What rounding adds to the noise of batches."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.wire_format import error_of
from deft_horovod.preserver.cost import Gradients
from deft_horovod.preserver.rounding import TOLERATED, added_noise

positive = st.floats(1e-3, 1e3)


def of(signal, noise, ranks):
    """Gradients with so much of each in the average's square."""
    return Gradients(signal + ranks * noise, signal + noise, 2.0 * noise, ranks, 100)


@given(positive, positive, st.integers(2, 64), st.floats(0.0, 1.0), positive)
def test_it_grows_with_the_error_and_not_with_the_size_of_gradients(
    signal, noise, ranks, error, scale
):
    here = added_noise(error, of(signal, noise, ranks))
    assert added_noise(2.0 * error, of(signal, noise, ranks)) == pytest.approx(2.0 * here)
    larger = of(scale * signal, scale * noise, ranks)
    assert added_noise(error, larger) == pytest.approx(here, rel=1e-6)
    # Where batches make all of the noise, more of it makes rounding matter less.
    if noise >= signal:
        assert added_noise(error, of(signal, 2.0 * noise, ranks)) <= here * (1.0 + 1e-6)


def test_it_is_what_rounding_adds_to_averages():
    torch.manual_seed(0)
    ranks, elements, error = 4, 200_000, 0.1
    signal = torch.randn(elements)
    own = signal + torch.randn(ranks, elements)
    rounding = error * own.square().mean().sqrt() * torch.randn(ranks, elements)
    noise = (own.mean(0) - signal).square().sum()
    expected = math.sqrt(rounding.mean(0).square().sum() / noise)
    seen = Gradients(
        float(own.square().sum(1).mean()), float(own.mean(0).square().sum()), 0.0, ranks, 1
    )
    assert added_noise(error, seen) == pytest.approx(expected, rel=0.03)


def test_equal_gradients_on_all_ranks_and_none_at_all():
    equal = of(1.0, 0.0, 2)
    assert added_noise(error_of("int8"), equal) < TOLERATED["equal"]
    assert added_noise(error_of("int4"), equal) > TOLERATED["fast"]
    assert added_noise(error_of("int4"), of(0.0, 0.0, 2)) == 0.0


def test_where_batches_make_most_of_the_gradient_every_format_of_a_word_is_tolerated():
    noisy = of(0.1, 1.0, 4)
    assert added_noise(error_of("int8"), noisy) < TOLERATED["equal"]
    assert added_noise(error_of("int4"), noisy) < TOLERATED["fast"]
