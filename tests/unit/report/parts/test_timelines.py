"""Timelines before and after."""

import pytest

from deft_horovod.report.basics.markup import document
from deft_horovod.report.parts.timelines import legend, pictures, timelines
from tests.unit.support.example import SLOW, profile
from tests.unit.support.reports import Page, alone, compared, empty, idle, predicted

FOUND = [compared(), compared(1), predicted("deft"), predicted("bucket"), predicted("priority")]


@pytest.mark.parametrize("found", FOUND)
def test_both_cover_the_same_time(found):
    before, after = pictures(found)
    assert before.duration_us == after.duration_us >= 2 * found.before.step_us
    for picture in (before, after):
        compute_us = sum(b.ends_us - b.begins_us for b in picture.bars if b.row == 0)
        assert compute_us == pytest.approx(picture.duration_us)
        assert all(0 <= bar.row < len(picture.rows) for bar in picture.bars)


@pytest.mark.parametrize("found", FOUND)
def test_every_bar_is_drawn_where_it_belongs(found):
    rects = list(timelines(found).iter("rect"))
    bars = [bar for picture in pictures(found) for bar in picture.bars]
    assert len(rects) == len(bars)
    duration_us = pictures(found)[0].duration_us
    drawn = sum(float(rect.get("width").rstrip("%")) for rect in rects)
    # A thousandth of a percent is what places are rounded to.
    expected = sum(100 * (bar.ends_us - bar.begins_us) / duration_us for bar in bars)
    assert drawn == pytest.approx(expected, abs=0.001 * len(rects))
    assert all(rect.find("title").text for rect in rects)
    for rect in rects:
        x, width = (float(rect.get(name).rstrip("%")) for name in ("x", "width"))
        assert 0.0 <= x <= x + width <= 100.002


def test_every_message_of_the_plan_is_seen():
    found = predicted("deft")
    _, after = pictures(found)
    labels = {bar.label for bar in after.bars if bar.row}
    assert labels == {str(n) for n in range(len(found.inputs.plan.buckets))}


def test_messages_that_horovod_fuses_name_their_buckets():
    found = predicted("bucket")
    _, after = pictures(found)
    details = " ".join(bar.detail for bar in after.bars if bar.row)
    assert "bucket" in details
    assert "tensor" not in details


def test_each_link_that_carries_something_has_a_row():
    slow = [
        link.model_copy(update={"cost": SLOW, "busy_cost": SLOW})
        for link in profile(links=("horovod", "second")).links
    ]
    found = predicted("deft", profile().model_copy(update={"links": tuple(slow)}), max_merge=1)
    before, after = pictures(found)
    assert [row.split(",")[0] for row in before.rows] == ["compute", "link horovod"]
    assert [row.split(",")[0] for row in after.rows] == ["compute", "link horovod", "link second"]


def test_what_was_measured_stands_beside_the_calculation():
    texts = [picture.text for picture in pictures(compared())]
    assert all("Measured: " in text and "% off" in text for text in texts)
    assert not any("Measured: " in picture.text for picture in pictures(predicted()))


def test_stock_alone_where_it_is_kept():
    [picture] = pictures(compared(0))
    assert picture.title == "Stock Horovod"
    page = Page(document(timelines(compared(0))))
    assert page.text.startswith("Timeline Calculated")


@pytest.mark.parametrize(("one", "rows"), [(alone(), 1), (empty(), 2)])
def test_degenerate_profiles(one, rows):
    [picture] = pictures(predicted(None, one))
    assert len(picture.rows) == rows
    assert not [bar for bar in picture.bars if bar.row]


def test_where_nothing_takes_time_there_is_no_timeline():
    assert timelines(predicted(None, idle())) is None


def test_the_legend_has_what_is_there():
    entries = [item.find("span").tail for item in legend({"waiting", "forward", "merged"})]
    assert entries == ["forward", "merged", "waiting"]
