"""What fields may hold."""

import pytest

from deft_horovod.capacity.input import values


def test_good_values_are_read():
    assert values.count("1_000") == 1_000
    assert values.price("0") == 0.0
    assert values.positive("1.3") == 1.3
    assert values.duration_s("1ms") == 1
    assert values.duration_us("2ms") == 2_000.0
    assert values.size_bytes("6GB") == 6_000_000_000
    assert values.size_bytes("7") == 7


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (values.count, "0"),
        (values.count, "1.5"),
        (values.price, "-1"),
        (values.price, "nan"),
        (values.positive, "0"),
        (values.positive, "fast"),
        (values.duration_us, "0ms"),
        (values.duration_s, "soon"),
        (values.size_bytes, "much"),
    ],
)
def test_others_are_not(read, text):
    with pytest.raises(ValueError):  # noqa: PT011
        read(text)
