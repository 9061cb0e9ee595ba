"""All gradients of a bucket at once, on the CPU: the same as one by one."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.extension import native

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
SHAPES = [(), (0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 3, 4, 5)]
LAYOUTS = ["contiguous", "transposed", "every second", "from the second on"]


def _tensor(shape, dtype, layout):
    if layout == "transposed" and len(shape) > 1:
        return torch.randn(shape[::-1]).to(dtype).permute(*range(len(shape))[::-1])
    if layout == "every second":
        return torch.randn((*shape, 2)).to(dtype)[..., 0]
    if layout == "from the second on":
        count = torch.Size(shape).numel()
        return torch.randn(count + 1).to(dtype)[1:].view(shape)
    return torch.randn(shape).to(dtype)


def _twin(tensor):
    """Its values in the same layout: torch rounds halves elsewhere where it takes another way."""
    twin = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    return twin.copy_(tensor)


_TENSORS = st.tuples(
    st.sampled_from(SHAPES),
    st.tuples(st.sampled_from(DTYPES), st.sampled_from(LAYOUTS)),
    st.tuples(st.sampled_from(DTYPES), st.sampled_from(LAYOUTS)),
)


@given(
    kinds=st.lists(_TENSORS, max_size=12),
    scale=st.sampled_from([1.0, 0.5, -3.0]),
    accumulate=st.booleans(),
    seed=st.integers(0, 9),
)
def test_it_is_pack_for_each(kinds, scale, accumulate, seed):
    torch.manual_seed(seed)
    gradients = [_tensor(shape, *first) for shape, first, _ in kinds]
    slots = [_tensor(shape, *second) for shape, _, second in kinds]
    expected = [_twin(slot) for slot in slots]
    back = [torch.full_like(gradient, 9.0) for gradient in gradients]
    for gradient, slot in zip(gradients, expected, strict=True):
        native.pack(gradient, slot, scale, accumulate)
    native.pack_all(gradients, slots, scale, accumulate)
    assert all(map(torch.equal, slots, expected))

    native.unpack_all(slots, back)
    for slot, gradient, result in zip(slots, gradients, back, strict=True):
        assert torch.equal(result, slot.to(gradient.dtype))


def test_unpacking_may_scale_and_accumulate():
    gradient = torch.ones(3)
    native.unpack_all([torch.tensor([1.0, 2.0, 3.0])], [gradient], 2.0, True)
    assert gradient.tolist() == [3.0, 5.0, 7.0]


def test_what_cannot_be_says_why():
    with pytest.raises(RuntimeError, match="2 gradients for 1 slots"):
        native.pack_all([torch.ones(1), torch.ones(1)], [torch.ones(1)])


def test_other_types_are_copied():
    slot = torch.zeros(3, dtype=torch.int64)
    native.pack_all([torch.tensor([1, 2, 3])], [slot])
    assert slot.tolist() == [1, 2, 3]


def test_no_graph_is_recorded():
    slot = torch.zeros(3)
    native.pack_all([torch.ones(3, requires_grad=True)], [slot], 2.0, True)
    assert not slot.requires_grad
    assert slot.tolist() == [2.0, 2.0, 2.0]
