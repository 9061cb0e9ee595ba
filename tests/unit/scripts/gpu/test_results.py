"""Results of the GPU check: kept over calls, whole, and never made up."""

import json
from pathlib import Path

import pytest

from scripts.gpu import results
from tests.places import ROOT

ABOUT = {"device": "cpu", "revision": "abc"}


def test_what_was_found_is_there_in_the_next_call(tmp_path: Path) -> None:
    path = tmp_path / "out" / results.FILE
    first = results.Results.open(path, ABOUT)
    outcome = results.Outcome(results.FAILED, 3.5, "why", "what", {"n": 1}, ("last", "words"))
    first.add("build", outcome)
    again = results.Results.open(path, {**ABOUT, "revision": "def"})
    assert again.has("build")
    assert again.outcomes["build"].last_lines == ("last", "words")
    assert again.outcomes["build"].revision == "abc", "the tree that was checked"
    assert list(path.parent.iterdir()) == [path], "nothing is left half written"


def test_an_earlier_file_counts_only_where_there_is_none(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.json"
    results.Results.open(earlier, ABOUT).add("a", results.Outcome(results.PASSED))
    now = tmp_path / "now.json"
    assert results.Results.open(now, ABOUT, earlier).has("a")
    results.Results.open(now, ABOUT).add("b", results.Outcome(results.PASSED))
    assert not results.Results.open(now, ABOUT, earlier).has("a")


@pytest.mark.parametrize("status", ["blocked", "no time"])
def test_what_was_not_reached_has_no_answer_and_replaces_none(tmp_path: Path, status: str) -> None:
    found = results.Results.open(tmp_path / "r.json", ABOUT)
    found.add("a", results.Outcome(status))
    assert not found.has("a")
    assert found.outcomes["a"].status == status
    found.add("a", results.Outcome(results.PASSED))
    found.add("a", results.Outcome(status))
    assert found.outcomes["a"].status == results.PASSED


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ('{"version": 7}', "is of version 7, expected 1"),
        (
            '{"version": 1, "about": {"device": "cuda"}, "stages": {}}',
            "on cuda, this one is on cpu",
        ),
    ],
)
def test_a_file_of_no_use_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(results.ResultsError, match=words):
        results.Results.open(path, ABOUT)


def test_a_program_that_cannot_do_its_work_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answer.json"
    monkeypatch.setenv(results.RESULT_VARIABLE, str(path))
    with pytest.raises(SystemExit) as left:
        results.leave_out("no GPU", seen=1)
    assert left.value.code == results.LEFT_OUT != 0
    assert json.loads(path.read_text()) == {"headline": "no GPU", "numbers": {"seen": 1}}


def test_what_was_found_on_a_gpu_can_be_gone_on_from_and_is_what_the_page_says() -> None:
    folder = ROOT / "docs" / "studies" / "gpu"
    found = results.Results.open(folder / results.FILE, {"device": "cuda"})
    page = (folder / "README.md").read_text(encoding="utf-8")
    packed = found.outcomes["pack"].numbers["models"]
    rates = [
        rate for model in ("resnet101", "gpt2_medium") for rate in packed[model]["gb_s"].values()
    ]
    encoded = found.outcomes["codec"].numbers["formats"]
    rates += [
        rate
        for sizes in encoded.values()
        for size in ("64", "256")
        for rate in sizes[size].values()
    ]
    assert [rate for rate in rates if f"{rate:,.0f}" not in page] == []
    statuses = {name: outcome.status for name, outcome in found.outcomes.items()}
    failed = [name for name, status in statuses.items() if status != results.PASSED]
    assert failed == ["training-staged-4", "ranks-nccl-parity", "training-nccl-4"]
    assert [name for name in failed if name not in page.split("--again")[1]] == []
    steps_ms = found.outcomes["overhead"].numbers["step_ms"]
    assert [ms for one in steps_ms.values() if (ms := f"{one['median']:.1f}") not in page] == []
