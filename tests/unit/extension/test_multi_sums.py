"""Sums over many tensors, on the CPU."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.preserver.cost import Gradients
from deft_horovod.runtime.extension import native


@given(
    shapes=st.lists(st.sampled_from([(), (0,), (3,), (2, 5)]), max_size=5),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64]),
    three=st.booleans(),
    seed=st.integers(0, 9),
)
def test_they_are_what_double_sums_up(shapes, dtype, three, seed):
    torch.manual_seed(seed)
    a, b, c = ([torch.randn(shape).to(dtype) for shape in shapes] for _ in range(3))
    sums = native.sums_all(a, b, c) if three else native.sums_all(a, b)
    x, y, z = (
        torch.cat([torch.zeros(0), *(t.double().flatten() for t in tensors)]).double()
        for tensors in (a, b, c)
    )
    third = z @ z if three else torch.zeros((), dtype=torch.float64)
    expected = torch.stack([x @ x, y @ y, (x - y) @ (x - y), x @ y, third])
    assert sums.dtype == torch.float64
    torch.testing.assert_close(sums, expected, rtol=1e-12, atol=1e-12)


def test_the_preserver_can_judge_by_them():
    average, before, own = (
        torch.tensor([3.0, 4.0]),
        torch.tensor([3.0, 3.0]),
        torch.tensor([5.0, 5.0]),
    )
    squares = native.sums_all([average], [before], [own]).tolist()
    seen = Gradients(squares[4], squares[0], squares[2], ranks=2, steps=1)
    assert (seen.own_square, seen.average_square, seen.change_square) == (50.0, 25.0, 1.0)


def test_the_order_of_memory_makes_no_difference():
    a, b = torch.randn(3, 4), torch.randn(4, 3).t()
    expected = native.sums_all([a], [b.contiguous()])
    torch.testing.assert_close(native.sums_all([a], [b]), expected, rtol=1e-12, atol=0.0)


def test_what_cannot_be_says_why():
    with pytest.raises(RuntimeError, match="lists of 1, 0 and 0 tensors"):
        native.sums_all([torch.ones(1)], [])
    with pytest.raises(RuntimeError, match=r"sizes \[2\] and \[3\] have no common sums"):
        native.sums_all([torch.ones(2)], [torch.ones(3)])
