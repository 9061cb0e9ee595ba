"""What a gradient is wrong by."""

import math

import pytest
import torch

from scripts.studies.judge.probe import error_of


def _gradients(*values):
    return {p: torch.tensor(v) for p, v in zip(PARAMETERS, values, strict=True)}


PARAMETERS = [torch.zeros(2), torch.zeros(2)]


def test_errors_are_shares_of_the_true_gradient():
    true = [_gradients([3.0, 0.0], [0.0, 1.0]), _gradients([5.0, 0.0], [0.0, 5.0])]
    # The mean is [4, 0] and [0, 3].
    error = error_of(_gradients([4.0, 2.0], [0.0, 6.0]), true, {})
    assert error.whole == pytest.approx(math.sqrt(13.0) / 5.0, rel=1e-3)
    assert error.layers == pytest.approx((0.5 + 1.0) / 2.0)
    assert error.worst == 1.0
    assert error.along == pytest.approx(9.0 / 25.0)
    assert error.rest == 0.0
    # The mean's variance is the workers' around it, over 2 x 1.
    assert error.noise == pytest.approx(math.sqrt(13.0 / (2.0 * (1.0 + 4.0) / 2.0)), rel=1e-3)


def test_what_is_kept_is_measured_by_the_gradient_too():
    true = [_gradients([3.0, 0.0], [0.0, 4.0])] * 2
    error = error_of(true[0], true, {PARAMETERS[0]: torch.tensor([0.0, 1.0])})
    assert error.rest == pytest.approx(0.2)
    assert error.whole == 0.0


def test_no_gradient_at_all_is_no_division_by_zero():
    none = _gradients([0.0, 0.0], [0.0, 0.0])
    error = error_of(none, [none, none], {})
    assert error.whole == error.layers == error.noise == error.along == 0.0
