"""Tables that scroll inside themselves."""

import pytest

from deft_horovod.report.basics.markup import document
from deft_horovod.report.basics.tables import Column, table
from tests.unit.support.reports import Page

COLUMNS = [Column("name", sentence=True), Column("size", number=True)]


def made(rows, **options):
    return Page(document(table("sizes", COLUMNS, rows, **options)))


def test_headers_name_rows_and_columns():
    page = made([("a", "1"), ("b", "2")])
    assert [attributes["scope"] for attributes in page.of("th")] == ["col", "col", "row", "row"]
    assert page.text == "sizes name size a 1 b 2"
    assert page.of("td") == [{"class": "number"}] * 2


def test_a_keyboard_can_scroll_it():
    [scroll] = made([("a", "1")]).of("div")
    assert (scroll["class"], scroll["tabindex"], scroll["role"]) == ("scroll", "0", "region")


@pytest.mark.parametrize(("count", "folded"), [(0, False), (30, False), (31, True)])
def test_long_ones_have_to_be_unfolded(count, folded):
    page = made([(str(n), "1") for n in range(count)])
    assert bool(page.of("details")) == folded
    assert len(page.of("tr")) == count + 1
    assert bool(made([], folded=True).of("details"))


def test_rows_have_as_many_cells_as_there_are_columns():
    with pytest.raises(ValueError, match="zip"):
        made([("a", "1", "2")])
