"""pack and unpack against plain torch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.parameter import WIRES
from deft_horovod.runtime.extension import native

KINDS = [(dtype, wire) for dtype, wires in WIRES.items() for wire in wires]
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 3, 4, 5)]


def _dtype(name):
    return getattr(torch, name)


def _laid_out(tensor, layout):
    """The same values in another order of memory."""
    if layout == "transposed" and tensor.dim() > 1:
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "channels last" and tensor.dim() == 4:
        return tensor.contiguous(memory_format=torch.channels_last)
    if layout == "every second":
        twice = torch.zeros((*tensor.shape, 2), dtype=tensor.dtype)
        twice[..., 0] = tensor
        return twice[..., 0]
    if layout == "expanded" and tensor.dim() > 0 and tensor.numel() > 0:
        return tensor[:1].expand_as(tensor)
    return tensor.contiguous()


LAYOUTS = ["contiguous", "transposed", "channels last", "every second", "expanded"]


@given(
    kind=st.sampled_from(KINDS),
    shape=st.sampled_from(SHAPES),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS[:3])),
    scale=st.sampled_from([1.0, 0.5, 3.0]),
    accumulate=st.booleans(),
    seed=st.integers(0, 9),
)
def test_it_is_what_torch_computes(kind, shape, layouts, scale, accumulate, seed):
    dtype, wire = map(_dtype, kind)
    torch.manual_seed(seed)
    gradient = _laid_out(torch.randn(shape).to(dtype), layouts[0])
    slot = _laid_out(torch.randn(shape).to(wire), layouts[1])
    before = slot.clone()
    kept = gradient.clone()
    native.pack(gradient, slot, scale, accumulate)
    expected = before.add_(gradient, alpha=scale) if accumulate else gradient.to(wire) * scale
    assert torch.equal(slot, expected)
    assert torch.equal(gradient, kept)

    back = _laid_out(torch.full(shape, 9.0, dtype=dtype), layouts[1])
    native.unpack(slot, back)
    assert torch.equal(back, slot.to(dtype))


@pytest.mark.parametrize("elements", [(1 << 18) - 1, (1 << 18) + 1])
def test_small_and_large_ones_take_different_ways_to_the_same_values(elements):
    gradient = torch.arange(elements, dtype=torch.float32)
    slot = torch.empty(elements)
    native.pack(gradient, slot, 1.0)
    assert torch.equal(slot, gradient)
    back = torch.zeros(elements)
    native.unpack(slot, back)
    assert torch.equal(back, gradient)


def test_a_gradient_that_lives_in_its_slot_is_left_alone():
    slot = torch.tensor([1.0, 2.0, 3.0])
    native.pack(slot, slot)
    assert slot.tolist() == [1.0, 2.0, 3.0]
    native.pack(slot, slot, 0.5)
    assert slot.tolist() == [0.5, 1.0, 1.5]
    native.pack(slot, slot, 1.0, True)
    assert slot.tolist() == [1.0, 2.0, 3.0]


def test_the_same_memory_in_another_order_is_copied_and_not_left_alone():
    flat = torch.arange(6.0)
    slot, gradient = flat.view(2, 3), torch.arange(6.0).view(3, 2).t()
    expected = gradient.clone()
    native.pack(gradient, slot)
    assert torch.equal(slot, expected)


def test_infinities_and_nan_travel():
    gradient = torch.tensor([float("inf"), float("-inf"), float("nan"), 1e6])
    slot = torch.zeros(4, dtype=torch.float16)
    native.pack(gradient, slot)
    assert torch.equal(slot.isinf(), torch.tensor([True, True, False, True]))
    assert slot.isnan().tolist() == [False, False, True, False]


def test_no_graph_is_recorded():
    gradient = torch.ones(3, requires_grad=True)
    slot = torch.zeros(3)
    native.pack(gradient, slot, 2.0, True)
    assert not slot.requires_grad
    assert slot.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("elements", [0, 1, 5, 7, 8])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_shards_tile_a_message_and_the_first_ranks_take_the_rest(elements, size):
    shards = [native.shard_of(elements, rank, size) for rank in range(size)]
    covered = [i for begin, count in shards for i in range(begin, begin + count)]
    assert covered == list(range(elements))
    counts = [count for _, count in shards]
    assert counts == sorted(counts, reverse=True)
    assert max(counts) - min(counts) <= 1
