"""Tests of the GPU check are counted, also those that were skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.gpu import tests as runner

REPORT = """<testsuites><testsuite>
<testcase classname="tests.gpu.test_a" name="test_good" time="1.5"/>
<testcase classname="tests.gpu.test_a" name="test_bad" time="0.5">
<failure message="no">why</failure></testcase>
<testcase classname="tests.gpu.test_b" name="test_left"><skipped message="no device"/></testcase>
<testcase classname="tests.gpu.test_b" name="test_broken"><error message="oh">x</error></testcase>
</testsuite></testsuites>"""


def test_a_report_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "tests.xml"
    path.write_text(REPORT)
    found = runner.count(path)
    assert found["passed"] == 1
    assert [entry["name"] for entry in found["failed"]] == [
        "test_a::test_bad",
        "test_b::test_broken",
    ]
    assert found["skipped"] == [{"name": "test_b::test_left", "why": "no device"}]
    assert runner.headline(found) == (
        "1 passed, 2 failed, 1 skipped; failed: test_a::test_bad, test_b::test_broken"
    )


def make_tests(folder: Path, text: str) -> None:
    (folder / "tests" / "gpu").mkdir(parents=True)
    (folder / "tests" / "gpu" / "test_some_kernels.py").write_text(text)


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("def test_a(): pass", 0, "1 passed, 0 failed, 0 skipped"),
        ("def test_a(): assert 0", 1, "0 passed, 1 failed, 0 skipped"),
        ("import os\ndef test_a(): assert os.environ['DEFT_TEST_DEVICE'] == 'cpu'", 0, "1 passed"),
        ("import pytest\ndef test_a(): pytest.skip('why')", 77, "1 skipped; skipped: why"),
        ("syntax error", 1, "1 failed"),
    ],
)
def test_only_what_ran_is_a_success(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    status: int,
    words: str,
) -> None:
    make_tests(tmp_path, text)
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    try:
        observed = runner.main(["--which", "kernels", "--device", "cpu"])
    except SystemExit as left:
        observed = left.code
    assert observed == status
    assert words in capsys.readouterr().out


def test_ranks_are_told_from_the_rest(tmp_path: Path) -> None:
    for name in ("test_a_ranks.py", "test_b_kernels.py", "ranks.py"):
        (tmp_path / name).touch()
    assert [p.name for p in runner.chosen(tmp_path, "a")] == ["test_a_ranks.py"]
    assert [p.name for p in runner.chosen(tmp_path, "kernels")] == ["test_b_kernels.py"]


def test_no_tests_are_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests" / "gpu").mkdir(parents=True)
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    with pytest.raises(SystemExit) as left:
        runner.main(["--which", "kernels", "--device", "cpu"])
    assert left.value.code == 77
