import click
import pytest

from deft_horovod.cli.list_options import CommaList


def number(text):
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a number")
    return int(text)


NUMBERS = CommaList("numbers", number)


@pytest.mark.parametrize(
    ("text", "values"), [("1", (1,)), ("3,1,2", (3, 1, 2)), (" 4, 4 ,5,", (4, 5))]
)
def test_values_keep_their_order_and_come_once(text, values):
    assert NUMBERS.convert(text, None, None) == values


@pytest.mark.parametrize(
    ("text", "said"), [("", "names nothing"), (",,", "names nothing"), ("1,x", "'x' is not")]
)
def test_what_cannot_be_read_is_a_mistake_in_the_command(text, said):
    with pytest.raises(click.BadParameter, match=said):
        NUMBERS.convert(text, None, None)


def test_what_was_read_already_stays():
    assert NUMBERS.convert((1, 2), None, None) == (1, 2)
