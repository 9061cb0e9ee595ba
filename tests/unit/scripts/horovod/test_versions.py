"""scripts/horovod/versions.py: what it keeps, and what it says."""

import sys

import pytest

from scripts.horovod import versions
from scripts.horovod.versions import StepError, Tried
from tests.places import ROOT


@pytest.fixture
def files(monkeypatch, tmp_path):
    monkeypatch.setattr(versions, "KEPT", tmp_path / "versions.json")
    monkeypatch.setattr(versions, "PAGE", tmp_path / "versions.md")
    return tmp_path


def test_rows_are_in_order_and_a_new_one_takes_the_place_of_the_old(files):
    for one in (
        Tried("3.12", "2.13.0", passed=1),
        Tried("3.9", "2.13.0", problem="too old"),
        Tried("3.12", "2.9.1", passed=2),
        Tried("3.12", "2.13.0", passed=3),
    ):
        versions.keep(one)
    found = [(one.python, one.torch, one.passed) for one in versions.kept()]
    assert found == [("3.9", "2.13.0", 0), ("3.12", "2.9.1", 2), ("3.12", "2.13.0", 3)]
    assert versions.main([]) == 0
    text = (files / "versions.md").read_text()
    assert "| 3.9 | 2.13.0 | 0.28.1 | no | too old |" in text
    assert "| 3.12 | 2.13.0 | 0.28.1 | yes | 3 passed, 0 failed, 0 skipped |" in text


def test_a_step_that_fails_says_its_last_lines(tmp_path):
    code = "import sys; print('much'); sys.exit('the reason')"
    with pytest.raises(StepError, match="the reason"):
        versions.run([sys.executable, "-c", code], tmp_path)


def test_a_python_that_is_not_there_is_a_problem_of_the_row(files):
    one = versions.tried(Tried("2.0", "2.13.0"), None)
    assert (one.problem, one.passed) == ("there is no python2.0", 0)


def test_a_checkout_of_horovod_needs_a_name(files, capsys):
    with pytest.raises(SystemExit):
        versions.main(["--tree", str(files)])
    assert "--tree and --called go together" in capsys.readouterr().err


def test_a_checkout_has_a_row_of_its_own(files):
    for horovod in (versions.RELEASE, "main, 2626dc8"):
        versions.keep(Tried("3.12", "2.13.0", horovod, passed=1))
    assert versions.page().count("1 passed") == 2


def test_the_tests_that_it_runs_exist():
    assert all((ROOT / path).exists() for path in versions.TESTS)


def test_the_page_is_that_of_what_is_kept():
    assert versions.PAGE.read_text(encoding="utf-8") == versions.page()
