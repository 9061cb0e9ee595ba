"""The plan, bucket by bucket."""

from deft_horovod.plan.rows import bucket_rows
from deft_horovod.report.basics.findings import ReportInputs, findings
from deft_horovod.report.basics.markup import document
from deft_horovod.report.parts.plan_table import plan_table
from tests.unit.picture.test_timeline import example
from tests.unit.support.planning import make_parameters
from tests.unit.support.reports import Page, compared, predicted


def test_every_bucket_is_there():
    found = predicted("deft")
    page = Page(document(plan_table(found)))
    for row in bucket_rows(found.inputs.plan):
        assert row.carries in page.text
        for fate in row.fates:
            assert fate.applied in page.text
            assert all(ride in page.text for ride in fate.rides)


def test_fates_that_differ_have_rows_of_their_own():
    plan, profile = example(8)
    parameters = make_parameters([1] * 8)
    found = findings(ReportInputs("x", profile, parameters, plan))
    rows = bucket_rows(plan)
    page = Page(document(plan_table(found)))
    expected = sum(1 if row.alike else len(row.fates) for row in rows)
    assert len(page.of("tr")) == expected + 1
    assert ("every step" in page.text) == any(
        row.alike and len(row.fates) == plan.period for row in rows
    )


def test_stock_has_none():
    assert plan_table(compared(0)) is None
    assert plan_table(predicted(None)) is None
