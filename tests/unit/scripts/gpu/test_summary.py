"""The summary of a GPU check: all stages, in one look, with what went wrong."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.scripts.conftest import load_script

TEXT = """\
# GPU check

2 passed, 1 FAILED, 1 no time, 1 not run (device cuda, revision abc).

| stage | question | outcome | s | what it found |
| --- | --- | --- | --- | --- |
| a | is it? | passed | 2 | yes / no |
| b | is it? | FAILED | 3 | status 1: broken |
| c | is it? | no time | 0 | 5 s were left |
| d | is it? | not run | 0 | it was not reached |
| e | is it? | passed | 0 | fine |

Without an answer: c, d. The same command goes on with them.

## b

```text
line 8
line 9
```
"""


@pytest.fixture
def check() -> SimpleNamespace:
    names = ("scripts.gpu.results", "scripts.gpu.stages", "scripts.gpu.summary")
    return SimpleNamespace(**{name.rpartition(".")[2]: load_script(name) for name in names})


def test_everything_is_in_one_table(
    check: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check.summary, "SHOWN_LINES", 2)
    about = {"device": "cuda", "revision": "abc"}
    results = check.results.Results.open(tmp_path / "r.json", about)
    stages = [check.stages.Stage(name, "is it?", (), 1, 1) for name in "abcde"]
    outcome = check.results.Outcome
    lines = tuple(f"line {i}" for i in range(10))
    results.add("a", outcome("passed", 2.2, headline="yes | no", last_lines=("never shown",)))
    results.add("b", outcome("FAILED", 3, "status 1: broken", "half", last_lines=lines))
    results.add("c", outcome("no time", reason="5 s were left"))
    results.add("e", outcome("passed", headline="fine"))
    assert check.summary.text(stages, results) == TEXT
    assert check.summary.failures(stages, results) == ["b"]
    assert not check.summary.complete(stages, results)


def test_it_is_complete_when_every_stage_has_its_answer(
    check: SimpleNamespace, tmp_path: Path
) -> None:
    results = check.results.Results.open(tmp_path / "r.json", {})
    stages = [check.stages.Stage(name, "", (), 1, 1) for name in "ab"]
    for name, status in (("a", "passed"), ("b", "skipped")):
        results.add(name, check.results.Outcome(status, reason="why"))
    assert check.summary.complete(stages, results)
    assert check.summary.failures(stages, results) == []
    assert check.summary.counts(stages, results) == "1 passed, 1 skipped"
