"""Sums over many tensors, against float64, on both devices."""

import pytest
import torch

from deft_horovod.runtime.extension import native

SIZES = [0, 1, 3, 8, 4097, 8193, 1_000_003, 0, 5]
KINDS = [
    (torch.float32, torch.float32, torch.float32),
    (torch.float16, torch.float16, torch.float16),
    (torch.bfloat16, torch.float32, torch.bfloat16),
    (torch.float64, torch.float64, torch.float64),
    (torch.float16, torch.float64, torch.float32),
]


def _tensors(sizes, dtype, device, shift):
    return [torch.randn(size + shift, device=device).to(dtype)[shift:] for size in sizes]


@pytest.mark.parametrize("dtypes", KINDS, ids=str)
@pytest.mark.parametrize("three", [False, True])
@pytest.mark.parametrize("shift", [0, 1])
def test_they_are_what_double_sums_up(device, dtypes, three, shift):
    torch.manual_seed(0)
    a, b, c = (_tensors(SIZES, dtype, device, shift) for dtype in dtypes)
    sums = native.sums_all(a, b, c if three else [])
    x, y, z = (torch.cat([t.double() for t in tensors]) for tensors in (a, b, c))
    expected = torch.stack([x @ x, y @ y, (x - y) @ (x - y), x @ y, z @ z if three else 0.0 * x[0]])
    # The sums' terms are exact but for one rounding; sums of a million of them are off by little.
    size = torch.stack([x @ x, y @ y, (x - y) @ (x - y), x.abs() @ y.abs(), z @ z])
    assert (sums - expected).abs().le(1e-12 * size).all()


def test_more_than_one_launch_holds(device):
    a = [torch.full((1 + i % 3,), 2.0, device=device) for i in range(5000)]
    b = [torch.full_like(t, 3.0) for t in a]
    elements = sum(t.numel() for t in a)
    assert native.sums_all(a, b).tolist() == [
        4.0 * elements, 9.0 * elements, 1.0 * elements, 6.0 * elements, 0.0
    ]  # fmt: skip


def test_any_order_of_memory(device):
    a, b = torch.randn(30, 40, device=device), torch.randn(40, 30, device=device).t()
    wide = torch.randn(30, 40, 2, device=device)[..., 0]
    sums = native.sums_all([a, wide], [b, a])
    expected = native.sums_all([a, wide.contiguous()], [b.contiguous(), a])
    torch.testing.assert_close(sums, expected, rtol=1e-12, atol=1e-10)
