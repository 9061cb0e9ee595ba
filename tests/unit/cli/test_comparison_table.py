"""The verdict of a comparison, and its table."""

import pytest

from deft_horovod.cli.comparison_table import rendered, to_data, verdict
from deft_horovod.cli.output import plain_text
from tests.unit.cli.jobs import comparison


def test_a_gain_is_told_with_its_spread():
    text = verdict(comparison(400_000.0, 250_000.0))
    assert "exposed 50% -> 21%" in text
    assert "step 404.0 -> 252.5 ms" in text
    assert "1.60x (1.60 .. 1.60 in 2 rounds)" in text
    assert text.endswith("every update in time")


def test_no_gain_is_told_as_plainly():
    text = verdict(comparison(250_000.0, 300_000.0, 260_000.0, chosen=0))
    assert text.startswith("stock Horovod is kept: the best of the others, priority, was 0.96x")


def test_all_that_took_part_have_a_row():
    shown = plain_text(rendered(comparison(400_000.0, 250_000.0, 300_000.0)))
    rows = [line.split() for line in shown.splitlines()]
    assert [row[0] for row in rows[2:]] == ["stock", "bucket", "priority"]
    assert rows[3][1] == "252.5"
    assert "four of five" in shown


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_programs_get_the_same(chosen):
    of = comparison(400_000.0, 250_000.0, 300_000.0, chosen=chosen)
    data = to_data(of)
    assert data["verdict"] == verdict(of)
    assert data["speedup"] == data["arms"][chosen]["speedup"]
    assert data["arms"][0]["speedup"] == 1.0
