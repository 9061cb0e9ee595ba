import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.rate import parse_rate, rate_text


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10gbit", 1e10),
        ("500mbit", 5e8),
        (" 2.5 Gbit/s ", 2.5e9),
        ("25Gbps", 2.5e10),
        ("100 mbits", 1e8),
        ("1tbit", 1e12),
        ("64kbit", 64e3),
        ("9600bit", 9600.0),
        ("9600bps", 9600.0),
    ],
)
def test_rates_are_read(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "fast", "10", "10GB", "10 apples", "-1gbit", "1e3mbit", "gbit", "0gbit", "1" * 30]
)
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(ValueError, match=r"is not a rate such as|carries nothing"):
        parse_rate(text)


@given(st.integers(1, 10**15))
def test_text_is_read_back(rate):
    assert parse_rate(rate_text(rate)) == pytest.approx(rate, rel=1e-9)


def test_text_has_the_largest_unit():
    rates = (1, 9_600, 5e8, 2.5e9, 1e12)
    assert [rate_text(rate) for rate in rates] == ["1bit", "9.6kbit", "500mbit", "2.5gbit", "1tbit"]
