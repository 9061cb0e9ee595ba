"""The codec of a device makes what the reference makes on the host, bit for bit."""

import pytest
import torch

from deft_horovod.runtime.extension import native

FORMATS = ("f32", "f16", "bf16", "e4m3", "int8", "int4")
SIZES = (0, 1, 31, 33, 64, 255, 256, 257, 1000, 100_003, 1 << 20)


def _bits(tensor):
    """Any NaN is as good as another."""
    return torch.where(tensor.isnan(), torch.full_like(tensor, torch.nan), tensor).view(torch.int32)


def _values(size, power):
    generator = torch.Generator().manual_seed(size)
    values = torch.randn(size, generator=generator) * 2.0**power
    rest = torch.randn(size, generator=generator) * 2.0 ** (power - 5)
    return values, rest


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("power", [0, -130, 100])
@pytest.mark.parametrize("shift", [0, 1])
def test_bytes_rests_and_values_are_those_of_the_reference(device, name, power, shift):
    for size in SIZES:
        values, rest = _values(size + shift, power)
        if size > 300:
            values[size // 2] = float("inf")
            values[size // 3] = float("nan")
        own = values.to(device)[shift:]
        own_rest = rest.to(device)[shift:]
        values, rest = values[shift:].clone(), rest[shift:].clone()
        expected = native.wire_encode(name, values, rest, "reference")
        data = native.wire_encode(name, own, own_rest)
        assert torch.equal(data.cpu(), expected)
        assert torch.equal(_bits(own_rest.cpu()), _bits(rest))
        alone = native.wire_encode(name, values, kind="reference")
        assert torch.equal(native.wire_encode(name, own).cpu(), alone)
        decoded = native.wire_decode(name, expected, size, "reference")
        assert torch.equal(_bits(native.wire_decode(name, data, size).cpu()), _bits(decoded))
        native.wire_decode_add(name, data, own)
        native.wire_decode_add(name, expected, values, "reference")
        assert torch.equal(_bits(own.cpu()), _bits(values))


def test_a_kind_is_a_matter_of_the_host():
    values = torch.ones(3, device="meta")
    with pytest.raises(native.WireError, match="no codec 'auto' on meta"):
        native.wire_encode("int8", values)
