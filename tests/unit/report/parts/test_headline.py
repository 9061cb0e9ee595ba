"""The verdict, and the figures it rests on."""

import pytest

from deft_horovod.comparison.text import verdict
from deft_horovod.report.basics.markup import document
from deft_horovod.report.parts.headline import headline, headline_text, verdict_text
from tests.unit.support.example import profile
from tests.unit.support.reports import Page, alone, compared, comparison, predicted


def tiles(found):
    made = headline(found)
    texts = [entry.text for entry in made.iter() if entry.tag in ("dt", "dd")]
    return {texts[i]: texts[i + 1 : i + 3] for i in range(0, len(texts), 3)}


def test_a_gain_that_was_measured():
    found = compared()
    assert headline_text(found) == "1.29x as fast with deft (late)"
    assert verdict_text(found) == verdict(comparison())
    told = tiles(found)
    assert told["Step"][0] == "265.2 → 205.0 ms"
    assert told["Speed-up"] == ["1.29x", "1.29 .. 1.29 in 2 rounds"]
    assert told["Exposed communication"][0] == "26% → 5%"
    assert told["Ranks"] == ["4", "10 steps profiled"]
    assert told["Link horovod"] == ["250.0 MB/s", "1.00 ms to start a message"]


def test_stock_that_is_kept():
    found = compared(0)
    assert headline_text(found) == "Stock Horovod is kept"
    told = tiles(found)
    assert "Speed-up" not in told
    assert told["Step"][0] == "265.2 ms"
    assert told["Updates"] == ["100% in time", "every update in time"]


def test_what_is_predicted_is_called_that():
    found = predicted("deft", max_merge=1)
    assert headline_text(found).startswith("Predicted: ")
    assert verdict_text(found).startswith("predicted for deft: communication exposed ")
    told = tiles(found)
    assert told["Speed-up"][1] == "predicted; stock Horovod is 1"
    assert told["Step"][1].startswith("predicted; ")
    assert told["Updates"][0].endswith("% in time")
    assert told["Updates"][1].endswith("1 step late")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (predicted(None, alone()), "Nothing travels on one rank"),
        (predicted(None, profile(links=())), "No link was measured"),
        (predicted(None), "Stock Horovod is kept"),
    ],
)
def test_without_a_plan(found, said):
    assert headline_text(found) == said
    assert "None" not in Page(document(headline(found))).text
    assert "predicted for" not in verdict_text(found)


def test_every_link_has_a_tile():
    told = tiles(predicted("deft", profile(links=("horovod", "second"))))
    assert {"Link horovod", "Link second"} <= set(told)
