"""The shell of a page."""

from deft_horovod.report.basics.markup import element
from deft_horovod.report.basics.shell import shell
from tests.unit.support.reports import Page


def test_it_is_a_whole_page_that_fetches_nothing():
    text = shell("A <title>", element("h1", "Told"), None)
    assert Page(text).open == []
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert "default-src 'none'" in text
    assert "<title>A &lt;title&gt;</title>" in text
    assert text.count("<h1>") == 1
