"""How much of the gradients is applied how late."""

import pytest

from deft_horovod.plan import Staleness
from deft_horovod.report.basics.markup import document
from deft_horovod.report.parts.staleness_chart import look, shares, staleness_chart
from tests.unit.support.reports import Page, compared, empty, predicted


@pytest.mark.parametrize("found", [predicted("deft"), predicted("least_stale"), compared()])
def test_shares_are_all_of_the_bytes(found):
    kinds = shares(found.inputs.plan)
    assert sum(share for _, share in kinds) == pytest.approx(1.0)
    rects = [r for r in staleness_chart(found).iter("rect") if r.get("class") != "groove"]
    drawn = [float(rect.get("width").rstrip("%")) for rect in rects]
    assert drawn == pytest.approx([100 * share for _, share in kinds], abs=0.001)
    assert [rect.get("class") for rect in rects] == [look(kind) for kind, _ in kinds]


def test_means_are_told():
    text = Page(document(staleness_chart(predicted("deft", max_merge=1)))).text
    assert "times a step" in text
    assert "delay 1" in text


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"delay": 0, "merged": 1}, "synchronous"),
        ({"delay": 0, "merged": 1, "gated": True}, "gated"),
        ({"delay": 2, "merged": 1}, "delayed"),
        ({"delay": 1, "merged": 4, "gated": True}, "merged"),
    ],
)
def test_looks_are_those_of_the_timeline(fields, name):
    assert look(Staleness(bytes=1, **fields)) == name


def test_without_a_plan_there_is_none():
    assert staleness_chart(compared(0)) is None
    assert staleness_chart(predicted(None)) is None
    assert staleness_chart(predicted("bucket", empty())) is None
