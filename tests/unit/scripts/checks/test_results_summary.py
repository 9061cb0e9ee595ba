"""What the reports of a test run add up to."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.checks import results_summary as summary

FAILED, SKIPPED, PASSED = "<failure/>", "<skipped/>", ""


def report(folder: Path, name: str, **outcomes: str) -> None:
    inner = "".join(
        f'<testcase classname="tests" name="{case}">{outcome}</testcase>'
        for case, outcome in outcomes.items()
    )
    path = folder / f"{name}.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<testsuites><testsuite>{inner}</testsuite></testsuites>")


def said(folder: Path, broken: int = 0) -> tuple[bool, str]:
    found = summary.summarise(folder, broken)
    return found.green, str(found)


def test_all_suites_count(tmp_path: Path) -> None:
    report(tmp_path, "unit", a=PASSED, b=SKIPPED)
    report(tmp_path, "scripts.cluster.cluster", a=PASSED)
    assert said(tmp_path) == (True, "2 passed, 0 failed, 1 skipped")
    assert said(tmp_path, broken=1) == (False, "2 passed, 1 failed, 1 skipped")


@pytest.mark.parametrize("outcome", [FAILED, "<error/>"])
def test_a_failure_is_one(tmp_path: Path, outcome: str) -> None:
    report(tmp_path, "unit", a=PASSED, b=outcome)
    assert said(tmp_path) == (False, "1 passed, 1 failed, 0 skipped")


def test_nothing_at_all_is_not_green(tmp_path: Path) -> None:
    assert said(tmp_path) == (False, "0 passed, 0 failed, 0 skipped")


@pytest.mark.parametrize(("own", "failed"), [(None, 1), (PASSED, 1), (FAILED, 1)])
def test_a_program_that_crashed_counts_once(tmp_path: Path, own: str | None, failed: int) -> None:
    report(tmp_path, "cpp.ctest", plan_test=FAILED)
    if own is not None:
        report(tmp_path, "cpp/plan_test", case=own)
    text = f"{int(own == PASSED)} passed, {failed} failed, 0 skipped"
    assert said(tmp_path)[1] == text


def test_it_ends_with_a_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path, "unit", a=PASSED)
    assert summary.main([str(tmp_path), "0"]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed, 0 skipped\n"
    report(tmp_path, "unit", a=FAILED)
    assert summary.main([str(tmp_path), "0"]) == 1
