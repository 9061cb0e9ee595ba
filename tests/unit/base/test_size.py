import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.size import exact_size_text, parse_size, size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (7, 7),
        ("7", 7),
        ("7B", 7),
        ("25MB", 25_000_000),
        ("25 mb", 25_000_000),
        ("1MiB", 1_048_576),
        ("1.5KiB", 1536),
        ("0.001MB", 1000),
        ("2GiB", 2**31),
    ],
)
def test_sizes_are_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "MB", "25M", "25 apples", "-1", "1e6", "0.3B", True, None, 2.5, [1], "1" * 30]
)
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match=r"not a size|not a whole number"):
        parse_size(text)


@given(st.integers(0, 2**50))
def test_exact_text_is_read_back(size):
    assert parse_size(exact_size_text(size)) == size


def test_rounded_text():
    assert [size_text(size) for size in (0, 999, 1000, 4_194_304, 5 * 10**9)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "4.2 MB",
        "5.0 GB",
    ]
