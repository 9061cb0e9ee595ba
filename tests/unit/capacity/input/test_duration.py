"""Durations: read and written."""

import pytest

from deft_horovod.capacity.input.duration import duration_text, parse_duration


@pytest.mark.parametrize(
    ("text", "time_s"),
    [("90s", 90), ("15min", 900), ("1.5h", 5_400), ("2d", 172_800), (" 250 ms ", 0.25)],
)
def test_units_are_those_of_people(text, time_s):
    assert parse_duration(text) == time_s


@pytest.mark.parametrize("text", ["5", "h", "-3h", "3 weeks", ""])
def test_anything_else_is_no_time(text):
    with pytest.raises(ValueError, match="not a time such as 90s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("time_s", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (5_430, "1 h 31 min"),
        (-5, "-5 s"),
    ],
)
def test_it_is_written_as_long_as_it_is_read(time_s, text):
    assert duration_text(time_s) == text
