"""The codec of the wire formats: all kinds against the reference, and against torch's own casts."""

import math
import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.extension import native

FORMATS = ("f32", "f16", "bf16", "e4m3", "int8", "int4")
BLOCKS = {"e4m3": 256, "int8": 256, "int4": 64}
TOPS = {"e4m3": 448.0, "int8": 127.0, "int4": 7.0}
LEAST_NORMAL = 2.0**-126

formats = st.sampled_from(FORMATS)
block_formats = st.sampled_from(tuple(BLOCKS))
any_float = st.floats(width=32)
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
moderate = st.floats(
    -(2.0**60), 2.0**60, width=32
)  # neither these nor their sums overflow anything


def _tensor(values):
    return torch.tensor(values, dtype=torch.float32)


@st.composite
def messages(draw, elements=any_float):
    """Values and rests: many alike and some of any sort, so that blocks get filled."""
    length = draw(st.integers(0, 700))
    size = draw(st.floats(1e-42, 1e30))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    values = torch.randn(length, generator=generator) * size
    rest = torch.randn(length, generator=generator) * (size / 100)
    if length:
        some = st.dictionaries(st.integers(0, length - 1), elements, max_size=5)
        for index, value in draw(some).items():
            values[index] = value
    return values, rest


def _same(a, b):
    """Bit for bit, but that any NaN is as good as another."""
    a_bits, b_bits = a.view(torch.int32), b.view(torch.int32)
    return bool(((a_bits == b_bits) | (a.isnan() & b.isnan())).all())


def _through(name, values, rest=None):
    return native.wire_decode(name, native.wire_encode(name, values, rest), values.numel())


def _scales(name, data, elements):
    count = -(-elements // BLOCKS[name])
    return data[: 4 * count].clone().view(torch.float32)


def _per_value(name, scales, elements):
    return scales.repeat_interleave(BLOCKS[name])[:elements]


@given(name=formats, message=messages())
def test_all_kinds_make_the_same_bytes_rests_and_values(name, message):
    values, rest = message
    expected_rest = rest.clone()
    expected = native.wire_encode(name, values, expected_rest, "reference")
    alone = native.wire_encode(name, values, kind="reference")
    decoded = native.wire_decode(name, expected, values.numel(), "reference")
    total = values.clone()
    native.wire_decode_add(name, expected, total, "reference")
    assert expected.numel() == native.wire_encoded_bytes(name, values.numel())
    for kind in [*native.wire_kinds(), "auto"]:
        own_rest, own_total = rest.clone(), values.clone()
        assert torch.equal(native.wire_encode(name, values, own_rest, kind), expected)
        assert torch.equal(native.wire_encode(name, values, kind=kind), alone)
        assert _same(own_rest, expected_rest)
        assert _same(native.wire_decode(name, expected, values.numel(), kind), decoded)
        native.wire_decode_add(name, expected, own_total, kind)
        assert _same(own_total, total)
    assert _same(total, values + decoded)


@given(message=messages(), name=st.sampled_from(["f16", "bf16"]))
def test_without_a_rest_16_bits_are_what_torch_casts_to(message, name):
    values, _ = message
    cast = values.to(torch.float16 if name == "f16" else torch.bfloat16)
    data = native.wire_encode(name, values).view(torch.int16)[: values.numel()]
    number = ~values.isnan()
    assert torch.equal(data[number], cast.view(torch.int16)[number])
    assert _same(_through(name, values), cast.float())


@given(message=messages(finite))
def test_codes_of_e4m3_are_what_torch_casts_scaled_values_to(message):
    values, _ = message
    data = native.wire_encode("e4m3", values)
    scales = _scales("e4m3", data, values.numel())
    blocks = values.abs().split(256) if values.numel() else ()
    largest = torch.stack([block.max() for block in blocks]) if blocks else torch.empty(0)
    inverse = torch.where(scales > 0, 448.0 / largest, torch.zeros(()))
    scaled = values * _per_value("e4m3", inverse, values.numel())
    begin = 4 * scales.numel()
    codes = data[begin : begin + values.numel()]
    assert torch.equal(codes, scaled.to(torch.float8_e4m3fn).view(torch.uint8))
    worth = codes.view(torch.float8_e4m3fn).float()
    expected = worth * _per_value("e4m3", scales, values.numel())
    assert _same(_through("e4m3", values), expected)


@given(name=st.sampled_from(["int8", "int4"]), message=messages(finite))
def test_integers_are_off_by_half_a_step_at_most(name, message):
    values, _ = message
    scales = _scales(name, native.wire_encode(name, values), values.numel())
    step = _per_value(name, scales, values.numel()).double()
    error = (_through(name, values).double() - values.double()).abs()
    # 2^-22 of the value: roundings of the scale and of its inverse.
    assert bool((error <= step / 2 + values.double().abs() * 2**-22)[step > 0].all())
    assert bool((values.abs() < LEAST_NORMAL * TOPS[name])[step == 0].all())


@given(name=formats, message=messages(moderate))
def test_nothing_is_lost(name, message):
    values, before = message
    rest = before.clone()
    decoded = _through(name, values, rest)
    total = (values + before).double()
    kept = decoded.double() + rest.double()
    # One rounding of the subtraction, at most; nearly always none.
    assert bool(((kept - total).abs() <= rest.double().abs() * 2**-24).all())


@given(
    name=formats,
    message=messages(moderate),
    bad=st.sampled_from([math.inf, -math.inf, math.nan]),
    data=st.data(),
)
def test_what_is_not_finite_stays_so_and_leaves_its_rest_alone(name, message, bad, data):
    values, before = message
    if not values.numel():
        return
    place = data.draw(st.integers(0, values.numel() - 1))
    values[place] = bad
    rest = before.clone()
    decoded = _through(name, values, rest)
    block = BLOCKS.get(name, 1)
    inside = torch.arange(values.numel()) // block == place // block
    assert not decoded[inside].isfinite().any()
    assert decoded[~inside].isfinite().all()
    assert torch.equal(rest[inside], before[inside])


@given(name=formats, message=messages(finite))
def test_finite_values_stay_finite_with_a_rest(name, message):
    values, rest = message
    sums = values + rest
    decoded = _through(name, values, rest)
    if bool(sums.isfinite().all()):
        assert decoded.isfinite().all()
        assert rest.isfinite().all()


@given(name=block_formats, power=st.integers(-100, 100), data=st.data())
def test_what_a_format_has_comes_back(name, power, data):
    levels = {
        "int8": torch.arange(-127.0, 128.0),
        "int4": torch.arange(-7.0, 8.0),
        "e4m3": torch.arange(0, 127, dtype=torch.uint8).view(torch.float8_e4m3fn).float(),
    }[name]
    chosen = data.draw(st.lists(st.sampled_from(levels.tolist()), min_size=1, max_size=63))
    values = _tensor([TOPS[name], *chosen]) * 2.0**power
    assert _same(_through(name, values), values)


def test_flushing_denormals_changes_nothing():
    values = torch.randn(1000, generator=torch.Generator().manual_seed(1)) * 1e-38
    expected = {name: native.wire_encode(name, values) for name in FORMATS}
    assert torch.set_flush_denormal(True)
    try:
        for name in FORMATS:
            assert torch.equal(native.wire_encode(name, values), expected[name])
    finally:
        torch.set_flush_denormal(False)


def test_the_message_is_as_documented():
    values = _tensor([float(i - 20) for i in range(41)])
    values[0] = 28.0
    data = bytes(native.wire_encode("int4", values).tolist())
    assert struct.unpack("<f", data[:4]) == (4.0,)
    assert len(data) == 36
    low, high = data[4] & 15, data[4] >> 4
    assert (low, high) == (7, 3)  # value 0, which is 28, and value 32, which is 12
    assert data[4 + 9] == (16 - 3) + 0  # value 9 is -11, value 41 is not there


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: native.wire_encode("int2", torch.ones(3)), "unknown wire format 'int2'"),
        (lambda: native.wire_encode("int8", torch.ones(3), kind="mmx"), "no codec 'mmx' here"),
        (lambda: native.wire_encode("int8", torch.ones(3).double()), "elements of Double"),
        (lambda: native.wire_encode("int8", torch.ones(4, 2).t()), "not contiguous"),
        (lambda: native.wire_encode("int8", torch.ones(3), torch.ones(2)), "rest has 2"),
        (lambda: native.wire_decode("int8", torch.ones(3), 3), "data has 3 elements of Float"),
        (lambda: native.wire_decode("f32", torch.zeros(8, dtype=torch.uint8), 3), "expected 12"),
        (lambda: native.wire_encoded_bytes("f16", -1), "-1 values, expected 0 or more"),
        (lambda: native.wire_decode("f16", torch.zeros(0, dtype=torch.uint8), -1), "-1 values"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(native.WireError, match=message):
        call()


def test_results_go_into_memory_that_is_given():
    values, message, out = torch.arange(5.0), torch.zeros(20, dtype=torch.uint8), torch.zeros(5)
    assert native.wire_encode("f32", values, out=message) is not None
    assert native.wire_decode("f32", message, 5, out=out).data_ptr() == out.data_ptr()
    assert torch.equal(out, values)
    with pytest.raises(native.WireError, match="out has 5 elements of Float"):
        native.wire_encode("f32", values, out=values)
    with pytest.raises(native.WireError, match="out has 5 elements of Float on cpu; expected 4"):
        native.wire_decode("f32", message[:16], 4, out=out)


def test_kinds_begin_with_the_reference():
    assert native.wire_kinds()[:2] == ["reference", "portable"]
