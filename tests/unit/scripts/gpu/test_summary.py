"""The summary of a GPU check: all stages, in one look, with what went wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.gpu import results as gpu_results
from scripts.gpu import stages as gpu_stages
from scripts.gpu import summary

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


def test_everything_is_in_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "SHOWN_LINES", 2)
    about = {"device": "cuda", "revision": "abc"}
    results = gpu_results.Results.open(tmp_path / "r.json", about)
    stages = [gpu_stages.Stage(name, "is it?", (), 1, 1) for name in "abcde"]
    outcome = gpu_results.Outcome
    lines = tuple(f"line {i}" for i in range(10))
    results.add("a", outcome("passed", 2.2, headline="yes | no", last_lines=("never shown",)))
    results.add("b", outcome("FAILED", 3, "status 1: broken", "half", last_lines=lines))
    results.add("c", outcome("no time", reason="5 s were left"))
    results.add("e", outcome("passed", headline="fine"))
    assert summary.text(stages, results) == TEXT
    assert summary.failures(stages, results) == ["b"]
    assert not summary.complete(stages, results)


def test_it_is_complete_when_every_stage_has_its_answer(tmp_path: Path) -> None:
    results = gpu_results.Results.open(tmp_path / "r.json", {})
    stages = [gpu_stages.Stage(name, "", (), 1, 1) for name in "ab"]
    for name, status in (("a", "passed"), ("b", "skipped")):
        results.add(name, gpu_results.Outcome(status, reason="why"))
    assert summary.complete(stages, results)
    assert summary.failures(stages, results) == []
    assert summary.counts(stages, results) == "1 passed, 1 skipped"
