"""Many gradients into a bucket and out of it, against float64, on both devices."""

import pytest
import torch

from deft_horovod.runtime.extension import native

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
SIZES = [0, 1, 2, 3, 7, 8, 17, 255, 4097, 8191, 8192, 8193, 100_003, 0, 5]


def _slices(sizes, dtype, device, shift):
    """Neighbours in one buffer, so that they begin anywhere; with a guard before each."""
    flat = torch.randn(sum(sizes) + (shift + 1) * len(sizes), device=device).to(dtype)
    views, at = [], 0
    for size in sizes:
        at += shift + 1
        views.append(flat[at : at + size])
        at += size
    return flat, views


def _expect(results, gradients, before, scale, accumulate):
    for result, gradient, old in zip(results, gradients, before, strict=True):
        exact = gradient.double() * scale + (old.double() if accumulate else 0.0)
        # A kernel rounds to float (or double) once and to the type once; the CPU casts before it
        # scales, which is twice the type's own rounding. Halves have 2^-24 as their least step.
        unit = torch.finfo(result.dtype).eps / 2
        error = exact.abs() * (2.01 * unit + 2.0**-23) + (2.0**-23 if unit > 2.0**-24 else 0.0)
        if torch.float64 in {result.dtype, gradient.dtype} and result.dtype == torch.float64:
            error = exact.abs() * 2.0**-51
        # Where a sum cancels, the error is that of its parts. The CPU rounds the product, too.
        part = unit if result.is_cpu else min(unit, 2.0**-24)
        error += (gradient.double() * scale).abs() * 2.0 * part * accumulate
        assert (result.double() - exact).abs().le(error).all()


@pytest.mark.parametrize("wire", DTYPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shift", [0, 3])
def test_all_pairs_of_types_wherever_they_lie(device, dtype, wire, accumulate, shift):
    torch.manual_seed(0)
    _, gradients = _slices(SIZES, dtype, device, shift)
    flat, slots = _slices(SIZES, wire, device, 0)
    inside = torch.zeros_like(flat, dtype=torch.bool)
    at = 0
    for size in SIZES:
        at += 1
        inside[at : at + size] = True
        at += size
    kept = flat.clone()
    before = [slot.clone() for slot in slots]
    native.pack_all(gradients, slots, 0.75, accumulate)
    _expect(slots, gradients, before, 0.75, accumulate)
    assert torch.equal(flat[~inside], kept[~inside])


def test_out_of_the_bucket(device):
    _, slots = _slices(SIZES, torch.float16, device, 1)
    _, gradients = _slices(SIZES, torch.float32, device, 0)
    native.unpack_all(slots, gradients)
    for slot, gradient in zip(slots, gradients, strict=True):
        assert torch.equal(gradient, slot.float())
    native.unpack_all(slots, gradients, 3.0, True)
    for slot, gradient in zip(slots, gradients, strict=True):
        torch.testing.assert_close(gradient, slot.float() * 4.0, rtol=2e-7, atol=0.0)


@pytest.mark.parametrize("count", [300, 3000])
def test_many_small_ones_beside_a_large_one(device, count):
    sizes = [1 + i % 50 for i in range(count)]
    sizes[count // 2] = 1_000_003
    _, gradients = _slices(sizes, torch.float32, device, 0)
    _, slots = _slices(sizes, torch.float32, device, 0)
    native.pack_all(gradients, slots)
    assert all(map(torch.equal, slots, gradients))


def test_any_order_of_memory(device):
    def transposed():
        return torch.randn(300, 70, device=device).t()

    wide = torch.randn(70, 300, 2, device=device)
    channels_last = torch.randn(4, 8, 5, 5, device=device).to(memory_format=torch.channels_last)
    gradients = [
        transposed(),
        transposed(),
        wide[..., 0],
        channels_last,
        torch.randn((), device=device),
    ]
    slots = [
        torch.zeros(300, 70, device=device).t(),
        torch.zeros(70, 300, device=device),
        torch.zeros(70, 300, device=device),
        torch.zeros_like(channels_last),
        torch.zeros((), device=device),
    ]
    native.pack_all(gradients, slots, 2.0)
    for gradient, slot in zip(gradients, slots, strict=True):
        assert torch.equal(slot, gradient * 2.0)


def test_a_gradient_in_its_own_slot(device):
    slot = torch.randn(10_001, device=device)
    before = slot.clone()
    native.pack_all([slot], [slot])
    assert torch.equal(slot, before)
    native.pack_all([slot], [slot], 0.5)
    assert torch.equal(slot, before * 0.5)


def test_it_runs_in_the_current_stream_and_leaves_the_device_current(device):
    if device.type == "cpu":
        pytest.skip("streams are CUDA's")
    current = torch.cuda.current_device()
    stream = torch.cuda.Stream()
    gradient, slot = torch.zeros(1 << 24, device=device), torch.zeros(1 << 24, device=device)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        gradient.fill_(7.0)
        native.pack_all([gradient], [slot])
        done = torch.cuda.Event()
        done.record()
    done.synchronize()
    assert slot.eq(7.0).all()
    assert torch.cuda.current_device() == current


def test_another_device_than_the_current_one(device):
    if device.type == "cpu" or torch.cuda.device_count() < 2:
        pytest.skip("fewer than two CUDA devices")
    with torch.cuda.device(0):
        slot = torch.zeros(1000, device="cuda:1")
        native.pack_all([torch.ones(1000, device="cuda:1")], [slot], 2.0)
        assert slot.eq(2.0).all()
        assert torch.cuda.current_device() == 0


@pytest.mark.slow
def test_more_elements_than_32_bits_count(device):
    if device.type == "cpu":
        pytest.skip("only the kernel counts for itself")
    elements = (1 << 31) + 8195
    free_bytes, _ = torch.cuda.mem_get_info(device)
    if free_bytes < 6 * elements:
        pytest.skip(f"{free_bytes} bytes of the device are free, {6 * elements} are needed")
    gradient = torch.zeros(elements, dtype=torch.float16, device=device)
    marks = [0, 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, elements - 1]
    gradient[marks] = torch.arange(1.0, 7.0, device=device, dtype=torch.float16)
    slot = torch.full((elements,), 9.0, dtype=torch.float16, device=device)
    native.pack_all([gradient, gradient[-3:]], [slot, torch.zeros_like(slot[:3])])
    assert slot[marks].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert torch.count_nonzero(slot).item() == len(marks)
