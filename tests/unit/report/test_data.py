"""What is behind the page."""

import json

import pytest

from deft_horovod.report.data import report_data
from tests.unit.support.reports import alone, compared, empty, idle, predicted


@pytest.mark.parametrize(
    "found",
    [
        compared(),
        compared(0),
        predicted("deft"),
        predicted("bucket"),
        *(predicted(None, one) for one in (None, alone(), empty(), idle())),
    ],
)
def test_it_is_json(found):
    data = json.loads(json.dumps(report_data(found), allow_nan=False))
    assert data["measured"] == found.measured
    assert data["speedup"] == found.figures.speedup
    assert data["after_us"] == found.figures.after_us


def test_it_has_what_the_page_shows():
    found = compared()
    data = report_data(found)
    assert [row["name"] for row in data["steps"]] == ["stock", "bucket", "deft (late)"]
    assert len(data["timelines"]) == 2
    assert len(data["layers"]) == len(found.layers.rows)
    assert sum(kind["share"] for kind in data["staleness"]) == pytest.approx(1.0)
    assert len(data["links"][0]["residuals"]) == len(data["links"][0]["samples"])
    assert len(data["buckets"]) == len(found.inputs.plan.buckets)
