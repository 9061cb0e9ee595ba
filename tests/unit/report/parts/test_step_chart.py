"""What a step takes, of all that were compared."""

import pytest

from deft_horovod.report.basics.markup import document
from deft_horovod.report.parts.step_chart import step_chart, step_rows
from tests.unit.support.reports import Page, alone, compared, comparison, idle, predicted


def widths(found):
    """Of computing and of what is exposed, row by row."""
    rects = [rect for rect in step_chart(found).iter("rect") if rect.get("width")]
    shares = [float(rect.get("width").rstrip("%")) for rect in rects]
    return list(zip(shares[::2], shares[1::2], strict=True))


def test_all_arms_are_there_with_their_spread():
    of, found = comparison(), compared()
    rows = step_rows(found)
    assert [row.name for row in rows] == [arm.name for arm in of.arms]
    assert [(row.low_us, row.high_us) for row in rows] == [arm.spread_us for arm in of.arms]
    assert [row.marked for row in rows] == [False, False, True]
    page = Page(document(step_chart(found)))
    assert sum(tag == "g" and a.get("class") == "spread" for tag, a in page.tags) == 3
    assert "2 rounds, 6 steps each" in page.text


@pytest.mark.parametrize("found", [compared(), compared(0), predicted("deft"), predicted(None)])
def test_computing_and_exposed_add_up_to_the_step(found):
    rows, drawn = step_rows(found), widths(found)
    scale = sum(drawn[0]) / rows[0].step_us
    for row, (computing, exposed) in zip(rows, drawn, strict=True):
        assert computing + exposed == pytest.approx(row.step_us * scale, abs=0.01)
        assert computing + exposed <= 100.0
        expected = min(row.step_us, found.figures.compute_us) * scale
        assert computing == pytest.approx(expected, abs=0.01)


def test_of_a_profile_the_floor_is_the_last():
    rows = step_rows(predicted("deft"))
    assert [row.name for row in rows] == ["stock", "deft", "floor"]
    assert rows[-1].step_us <= rows[1].step_us
    text = Page(document(step_chart(predicted("deft")))).text
    assert "four of five" not in text


@pytest.mark.parametrize("one", [alone(), idle()])
def test_degenerate_profiles_have_one_row(one):
    assert [row.name for row in step_rows(predicted(None, one))] == ["stock"]
    assert "nan" not in document(step_chart(predicted(None, one)))
