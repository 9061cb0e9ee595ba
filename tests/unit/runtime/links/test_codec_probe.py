"""The codec is timed as it works in a job, and nothing else is touched."""

from types import SimpleNamespace

import pytest
import torch

from deft_horovod.base.wire_format import EXACT
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.links import codec_probe

FORMATS = ("f16", "bf16", "e4m3", "int8", "int4")


@pytest.mark.parametrize("wire_format", [EXACT, *FORMATS])
def test_both_ways_take_time(wire_format):
    for samples in codec_probe.codec_samples(wire_format):
        (sample,) = samples
        assert sample.size_bytes == 4 << 20
        assert 0.0 < sample.time_us < 1e6


def test_values_with_their_rest_are_encoded_and_one_message_is_decoded(monkeypatch):
    calls = []

    def encode(wire_format, values, rest=None, out=None):
        calls.append(("encode", wire_format, values.numel(), rest is not None))
        return native.wire_encode(wire_format, values, rest, out=out)

    def decode(wire_format, message, elements, out):
        calls.append(("decode", wire_format, elements, message.numel()))
        return native.wire_decode(wire_format, message, elements, out=out)

    watched = SimpleNamespace(wire_encode=encode, wire_decode=decode)
    monkeypatch.setattr(codec_probe, "native", watched)
    codec_probe.codec_samples("int8")
    elements = (4 << 20) // 4
    message = native.wire_encoded_bytes("int8", elements)
    assert calls[0] == ("encode", "int8", elements, False)
    assert set(calls[1:]) == {
        ("encode", "int8", elements, True),
        ("decode", "int8", elements, message),
    }


def test_random_numbers_of_the_script_stay_what_they_are():
    torch.manual_seed(7)
    wanted = torch.rand(3)
    torch.manual_seed(7)
    codec_probe.codec_samples("int8")
    assert torch.equal(torch.rand(3), wanted)


def test_defaults_of_the_script_change_nothing():
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert codec_probe.codec_samples("int8")[0][0].time_us > 0.0
    finally:
        torch.set_default_dtype(torch.float32)
