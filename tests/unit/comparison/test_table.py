"""The table of a comparison."""

import pytest

from deft_horovod.cli.output import plain_text
from deft_horovod.comparison.table import rendered, to_data
from deft_horovod.comparison.text import verdict
from tests.unit.support.jobs import comparison


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
