import pytest

from deft_horovod.base.parameter import WIRE_ITEM_BYTES, WIRES, Parameter
from deft_horovod.errors import NotSupportedError


def test_bytes_are_those_on_the_wire():
    assert Parameter("w", 10, "float64", "float64", "cpu").bytes == 80
    assert Parameter("w", 10, "float64", "float16", "cpu").bytes == 20
    assert Parameter("w", 10, "bfloat16", "float32", "cpu").bytes == 40
    assert Parameter("w", 0, "float32", "float32", "cpu").bytes == 0


def test_every_wire_dtype_has_a_size_that_divides_a_header():
    assert {wire for wires in WIRES.values() for wire in wires} == set(WIRE_ITEM_BYTES)
    assert all(16 % size == 0 for size in WIRE_ITEM_BYTES.values())


@pytest.mark.parametrize(
    ("dtype", "wire"),
    [
        ("bfloat16", "bfloat16"),
        ("int64", "int64"),
        ("complex64", "float32"),
        ("float16", "float32"),
    ],
)
def test_what_cannot_travel_is_refused_by_name(dtype, wire):
    with pytest.raises(NotSupportedError, match=r"layer\.weight") as caught:
        Parameter("layer.weight", 1, dtype, wire, "cpu")
    assert f"{dtype} as {wire}" in str(caught.value)
    assert "bfloat16 as float32 or float16" in str(caught.value)


def test_a_negative_size_is_refused():
    with pytest.raises(NotSupportedError, match="negative size"):
        Parameter("w", -1, "float32", "float32", "cpu")
