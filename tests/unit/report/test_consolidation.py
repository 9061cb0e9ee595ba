"""A packing as a page."""

from deft_horovod.report.consolidation import consolidation_page
from tests.unit.support.capacity.answers import consolidation_answer
from tests.unit.support.reports import Page


def test_it_says_who_shares_which_machine():
    read = Page(consolidation_page(consolidation_answer()))
    assert read.open == []
    assert "1 machine" in read.text
    assert "a 2, b 2" in read.text
    assert "With stock Horovod" in read.text
