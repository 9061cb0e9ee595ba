"""Elements of HTML and SVG."""

from html.parser import HTMLParser
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.report.basics.markup import document, element, percent, svg


class Read(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen, self.texts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


FIT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=30)


@given(FIT, FIT)
def test_texts_and_attributes_are_read_back_as_they_were(text, value):
    read = Read(document(element("p", text, title=value)))
    fit = value.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    assert read.seen == [("p", {"title": fit})]
    assert "".join(read.texts).strip("\n") == text.replace("\ufffe", "\ufffd").replace(
        "\uffff", "\ufffd"
    ).strip("\n")


@given(st.text(st.characters(), max_size=30))
def test_any_text_makes_a_page_that_can_be_written(text):
    assert document(element("p", text, title=text)).encode("utf-8")


def test_pieces_stay_in_their_order():
    made = element("p", "a", element("b", "c"), "d", None, "e", element("i"), "f")
    assert "<p>a<b>c</b>de<i></i>f</p>" in document(made)


def test_names_of_attributes():
    made = element("p", class_="x", aria_label="y", title=None, viewBox="0 0 1 1")
    assert made.attrib == {"class": "x", "aria-label": "y", "viewBox": "0 0 1 1"}


def test_charts_say_what_they_show():
    made = svg(Element("g"), height=10, label="bars")
    assert (made.get("role"), made.get("aria-label"), made.get("width")) == ("img", "bars", "100%")


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0%"), (1.0, "100%"), (0.5, "50%"), (1 / 3, "33.333%")]
)
def test_shares(share, text):
    assert percent(share) == text


def test_a_document_is_html5():
    text = document(element("html", element("head", element("meta", charset="utf-8"))))
    assert text.startswith("<!DOCTYPE html>\n<html>")
    assert "</meta>" not in text
