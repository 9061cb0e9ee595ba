"""Corrections over many tensors, on the CPU."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.correct.guesses import ESTIMATES, Arrived
from deft_horovod.runtime.extension import native

SHAPES = [(), (0,), (3,), (2, 5)]
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


def _lists(shapes, dtypes):
    return [[torch.randn(shape).to(dtype) for shape in shapes] for dtype in dtypes]


@given(
    shapes=st.lists(st.sampled_from(SHAPES), max_size=5),
    dtypes=st.lists(st.sampled_from(DTYPES), min_size=2, max_size=4),
    seed=st.integers(0, 9),
)
def test_it_is_a_sum_in_double(shapes, dtypes, seed):
    torch.manual_seed(seed)
    out, *inputs = _lists(shapes, dtypes)
    coefficients = [0.25, 1.0, -0.25][: len(inputs)]
    native.combine_all(out, inputs, coefficients)
    for i, result in enumerate(out):
        terms = [c * tensors[i].double() for c, tensors in zip(coefficients, inputs, strict=True)]
        exact, size = torch.stack(terms).sum(0), torch.stack(terms).abs().sum(0)
        # One rounding of the type, and those of double.
        error = torch.finfo(result.dtype).eps / 2 * exact.abs() + 1e-15 * size + 2.0**-25
        assert (result.double() - exact).abs().le(error).all()


def test_it_is_the_estimate_of_own_and_previous():
    torch.manual_seed(1)
    (own,), (average,), (own_then,), (out,) = _lists([(50,)], [torch.float64] * 4)
    native.combine_all([out], [[own], [average], [own_then]], [0.25, 1.0, -0.25])
    guess = ESTIMATES["own_and_previous"].guess(own, Arrived(average, own_then), 4)
    torch.testing.assert_close(out, guess, rtol=1e-12, atol=1e-15)


def test_dc_asgd():
    torch.manual_seed(2)
    (out,), (gradient,), (now,), (then,) = _lists([(50,)], [torch.float32] * 4)
    native.compensate_all([out], [gradient], [now], [then], 0.04)
    expected = gradient.double() + 0.04 * gradient.double() ** 2 * (now.double() - then.double())
    torch.testing.assert_close(out, expected.float(), rtol=1e-6, atol=0.0)


def test_an_input_may_be_the_output():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0])
    native.combine_all([x], [[x], [y]], [2.0, 1.0])
    assert x.tolist() == [12.0, 24.0]
    native.compensate_all([x], [x], [y], [y], 5.0)
    assert x.tolist() == [12.0, 24.0]


def test_what_cannot_be_says_why():
    one = [torch.ones(1)]
    with pytest.raises(RuntimeError, match="2 inputs with 1 coefficients"):
        native.combine_all(one, [one, one], [1.0])
    with pytest.raises(RuntimeError, match="4 inputs with 4 coefficients"):
        native.combine_all(one, [one] * 4, [1.0] * 4)
    with pytest.raises(RuntimeError, match="lists of 1 and 0 tensors"):
        native.combine_all(one, [[]], [1.0])
    with pytest.raises(RuntimeError, match=r"sizes \[1\] and \[2\] cannot be combined"):
        native.combine_all(one, [[torch.ones(2)]], [1.0])
