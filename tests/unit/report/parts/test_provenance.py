"""Where a report comes from."""

from deft_horovod import __version__
from deft_horovod.report.basics.findings import ReportInputs, findings
from deft_horovod.report.basics.markup import document
from deft_horovod.report.parts.provenance import caveats, facts, provenance
from tests.unit.support.example import profile
from tests.unit.support.reports import Page, alone, compared, predicted


def test_everything_that_it_depends_on_is_named():
    found = predicted("deft", max_merge=1)
    told = facts(found)
    assert told["by"] == f"deft_horovod {__version__}"
    assert told["made from"] == "profile.json"
    assert told["policy"] == "deft"
    assert told["max_merge"] == "1"
    assert told["profile"] == found.inputs.profile.hash()[:12]
    assert told["plan"] == found.inputs.plan.hash()[:12]
    assert told["profiled"] == "10 steps on 4 ranks"
    assert "above the floor" in told["solver"]


def test_a_comparison_names_what_was_asked_for():
    told = facts(compared())
    assert (told["policy asked for"], told["policy taken"]) == ("auto", "deft (late)")


def test_caveats_fit_the_report():
    assert any("in turns" in text for text in caveats(compared()))
    assert any("`deft-profile compare`" in text for text in caveats(predicted()))
    assert not any("Timelines" in text for text in caveats(predicted(None, alone())))
    one, found = profile(), predicted("bucket")
    less = one.select(range(len(one.tensors) - 1))
    part = findings(ReportInputs("x", less, found.inputs.parameters[:-1], found.inputs.plan))
    assert any("sparse" in text for text in caveats(part))


def test_the_section_has_all_of_it():
    page = Page(document(provenance(compared())))
    for title, value in facts(compared()).items():
        assert title in page.text
        assert value in page.text
    assert [piece.text for piece in provenance(predicted()).iter("code")] == [
        "deft-profile compare"
    ]
