"""Numbers as a page shows them."""

import pytest

from deft_horovod.profile import LinkCost
from deft_horovod.report.basics.wording import exposed_text, ms, rate_text, short


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0.0, "0"),
        (0.4, "0.000"),
        (12.0, "0.012"),
        (1_234.0, "1.23"),
        (12_345.0, "12.3"),
        (1_234_567.0, "1,234.6"),
        (-1_234.0, "-1.23"),
    ],
)
def test_milliseconds(us, text):
    assert ms(us) == text


def test_exposed_time_has_its_share():
    assert exposed_text(50_000.0, 200_000.0) == "50.0 ms (25%)"
    assert exposed_text(0.0, 0.0) == "0 ms (0%)"


@pytest.mark.parametrize(
    ("beta", "text"), [(0.004, "250.0 MB/s"), (0.5, "2.00 MB/s"), (0.0, "no limit seen")]
)
def test_rates(beta, text):
    assert rate_text(LinkCost(alpha_us=1.0, beta_us_per_byte=beta)) == text


def test_long_names_are_cut():
    assert short("a" * 20) == "a" * 20
    assert short("a" * 21) == "a" * 19 + "…"
