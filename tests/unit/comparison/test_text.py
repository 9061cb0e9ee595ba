"""The verdict of a comparison."""

from deft_horovod.comparison.text import updates_text, verdict
from tests.unit.support.jobs import comparison


def test_a_gain_is_told_with_its_spread():
    text = verdict(comparison(400_000.0, 250_000.0))
    assert "exposed 50% -> 21%" in text
    assert "step 404.0 -> 252.5 ms" in text
    assert "1.60x (1.60 .. 1.60 in 2 rounds)" in text
    assert text.endswith("every update in time")


def test_no_gain_is_told_as_plainly():
    text = verdict(comparison(250_000.0, 300_000.0, 260_000.0, chosen=0))
    assert text.startswith("stock Horovod is kept: the best of the others, priority, was 0.96x")


def test_stock_horovod_is_never_late():
    of = comparison(400_000.0, 250_000.0)
    assert [updates_text(arm) for arm in of.arms] == ["in time"] * 2
