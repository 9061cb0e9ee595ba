import pytest

from deft_horovod.profile import FormatCost, LinkCost
from deft_horovod.profile.format_text import codec_rate_text, format_text

COST = LinkCost(alpha_us=1_300.0, beta_us_per_byte=0.0013)


@pytest.mark.parametrize(
    ("us_per_byte", "text"),
    [(None, ""), (0.0, ""), (0.00008, "12.5 GB/s"), (0.001, "1 GB/s"), (1.0, "0.001 GB/s")],
)
def test_rates_of_the_codec(us_per_byte, text):
    assert codec_rate_text(us_per_byte) == text


def test_a_line_says_what_is_known():
    plain = FormatCost(format="int8", cost=COST)
    text = "link 'horovod' in int8: 1300 us a message + 769.2 MB/s of values"
    assert format_text("horovod", plain) == text
    half = plain.model_copy(update={"encode_us_per_byte": 0.00008})
    assert format_text("horovod", half) == text
    whole = half.model_copy(update={"decode_us_per_byte": 0.00005})
    assert format_text("horovod", whole) == (
        f"{text}; one core encodes 12.5 GB/s and decodes 20 GB/s"
    )


def test_a_link_without_a_limit_has_no_rate():
    free = FormatCost(format="f16", cost=LinkCost(alpha_us=5.0, beta_us_per_byte=0.0))
    assert format_text("second", free) == "link 'second' in f16: 5 us a message"
