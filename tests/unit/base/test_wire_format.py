"""The sizes and errors that planning reckons with are those of the codec."""

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.wire_format import (
    EXACT,
    WireFormat,
    encoded_bytes,
    error_of,
    rounding_text,
)
from deft_horovod.runtime.extension import native

FORMATS = get_args(WireFormat)


@given(st.sampled_from(FORMATS), st.integers(0, 5000))
def test_ranges_take_the_bytes_that_the_codec_makes(wire_format, elements):
    assert encoded_bytes(wire_format, elements) == native.wire_encoded_bytes(wire_format, elements)


@pytest.mark.parametrize("wire_format", FORMATS)
def test_errors_are_those_of_normally_distributed_values(wire_format):
    values = torch.randn(1 << 18, generator=torch.Generator().manual_seed(1))
    message = native.wire_encode(wire_format, values)
    back = native.wire_decode(wire_format, message, values.numel())
    error = ((back - values).norm() / values.norm()).item()
    assert error == pytest.approx(error_of(wire_format), rel=0.1)


def test_fewer_bits_are_less_exact():
    assert error_of(EXACT) == 0.0
    ladder = ["f32", "f16", "bf16", "int8", "e4m3", "int4"]
    assert sorted(FORMATS, key=error_of) == ladder


@pytest.mark.parametrize(
    ("wire_format", "text"),
    [("f32", "exact"), ("int8", "rounded by 0.66 %"), ("int4", "rounded by 11 %")],
)
def test_errors_in_words(wire_format, text):
    assert rounding_text(wire_format) == text
