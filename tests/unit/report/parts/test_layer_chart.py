"""What each layer computes and sends."""

import re

import pytest

from deft_horovod.report.basics.markup import document
from deft_horovod.report.parts.layer_chart import layer_chart
from tests.unit.support.example import profile
from tests.unit.support.reports import Page, alone, empty, many_tensors, predicted


def bars(section):
    styles = [e.get("style") for e in section.iter("span") if e.get("style")]
    return [float(re.fullmatch(r"--share: (.*)", style)[1]) for style in styles]


def test_the_longest_bar_is_whole_and_the_others_are_to_scale():
    found = predicted()
    rows = sorted(found.layers.rows, key=lambda r: (-r.communication_us["horovod"], r.number))
    times = [
        us
        for row in rows
        for us in (row.forward_us, row.backward_us, row.communication_us["horovod"])
    ]
    assert bars(layer_chart(found)) == pytest.approx([us / max(times) for us in times], abs=1e-4)


def test_the_largest_are_shown_and_the_rest_is_summed_up():
    found = predicted(None, many_tensors(60))
    section = layer_chart(found)
    page = Page(document(section))
    assert sum(a.get("class") == "layer" for a in page.of("div")) == 25
    assert "The other 35 layers together" in page.text
    assert len(page.of("tr")) == 61
    assert page.of("details")


def test_a_bar_for_each_link():
    found = predicted("deft", profile(links=("horovod", "second")))
    section = layer_chart(found)
    assert len(bars(section)) == 4 * len(found.layers.rows)
    assert "communication on link second" in Page(document(section)).text


def test_without_a_link_there_is_only_computing():
    found = predicted(None, alone())
    assert len(bars(layer_chart(found))) == 2 * len(found.layers.rows)


def test_no_layers_no_chart():
    assert layer_chart(predicted(None, empty())) is None
