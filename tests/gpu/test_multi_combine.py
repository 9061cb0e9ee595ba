"""Corrections over many tensors, against float64, on both devices."""

import pytest
import torch

from deft_horovod.runtime.extension import native

SIZES = [0, 1, 3, 8, 4097, 8193, 100_003, 0, 5]
HALF, BRAIN, SINGLE, DOUBLE = torch.float16, torch.bfloat16, torch.float32, torch.float64
KINDS = [
    (SINGLE, SINGLE, SINGLE, SINGLE),
    (HALF, HALF, HALF, HALF),
    (BRAIN, BRAIN, BRAIN, BRAIN),
    (SINGLE, HALF, SINGLE, BRAIN),
    (DOUBLE, DOUBLE, DOUBLE, DOUBLE),
    (SINGLE, SINGLE, DOUBLE, SINGLE),
]


def _tensors(sizes, dtype, device, shift):
    return [torch.randn(size + shift, device=device).to(dtype)[shift:] for size in sizes]


def _expect(out, terms, dtypes):
    """At most five roundings of float (or double) of the terms' size, and one of the type."""
    arithmetic = 2.0**-53 if DOUBLE in dtypes else 2.0**-24
    for i, result in enumerate(out):
        parts = torch.stack([term[i] for term in terms])
        exact, size = parts.sum(0), parts.abs().sum(0)
        unit = torch.finfo(result.dtype).eps / 2
        error = 5 * arithmetic * size + 1.01 * unit * exact.abs() + 2.0**-25
        assert (result.double() - exact).abs().le(error).all()


@pytest.mark.parametrize("dtypes", KINDS, ids=str)
@pytest.mark.parametrize("inputs", [1, 2, 3])
@pytest.mark.parametrize("shift", [0, 1])
def test_a_sum_of_up_to_three(device, dtypes, inputs, shift):
    torch.manual_seed(0)
    out = _tensors(SIZES, dtypes[0], device, 0)
    arrays = [_tensors(SIZES, dtype, device, shift) for dtype in dtypes[1 : inputs + 1]]
    coefficients = [0.25, 1.0, -0.25][:inputs]
    native.combine_all(out, arrays, coefficients)
    terms = [
        [c * t.double() for t in tensors] for c, tensors in zip(coefficients, arrays, strict=True)
    ]
    _expect(out, terms, dtypes[: inputs + 1])


@pytest.mark.parametrize("dtypes", KINDS, ids=str)
def test_dc_asgd(device, dtypes):
    torch.manual_seed(0)
    out, g, now, then = (_tensors(SIZES, dtype, device, 0) for dtype in dtypes)
    native.compensate_all(out, g, now, then, 0.04)
    wide = [[t.double() for t in tensors] for tensors in (g, now, then)]
    grown = [[0.04 * x * x * y for x, y in zip(wide[0], w, strict=True)] for w in wide[1:]]
    _expect(out, [wide[0], grown[0], [-t for t in grown[1]]], dtypes)


def test_an_input_may_be_the_output(device):
    x, y = torch.randn(10_001, device=device), torch.randn(10_001, device=device)
    expected = 2.0 * x + y
    native.combine_all([x], [[x], [y]], [2.0, 1.0])
    torch.testing.assert_close(x, expected, rtol=1e-6, atol=1e-6)


def test_more_than_one_launch_holds(device):
    x = [torch.full((1 + i % 3,), float(i), device=device) for i in range(5000)]
    out = [torch.empty_like(t) for t in x]
    native.combine_all(out, [x, x], [1.0, 2.0])
    assert all(torch.equal(o, 3.0 * t) for o, t in zip(out, x, strict=True))


def test_any_order_of_memory(device):
    out = torch.zeros(30, 40, device=device)
    x, y = torch.randn(40, 30, device=device).t(), torch.randn(30, 40, device=device)
    native.combine_all([out], [[x], [y]], [1.0, 1.0])
    torch.testing.assert_close(out, x + y, rtol=1e-6, atol=1e-6)
