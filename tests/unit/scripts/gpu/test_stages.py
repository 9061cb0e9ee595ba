"""Stages of the GPU check: which run, in which order, for how long, and how they end."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from scripts.gpu import results, stages
from tests.places import ROOT

PATIENCE_S = 20


@pytest.fixture
def found(tmp_path: Path) -> Any:
    return results.Results.open(tmp_path / "out" / "results.json", {"device": "cpu"})


def stage(name: str, **fields: Any) -> Any:
    given = {"title": name, "command": ("true",), "limit_s": 60, "least_s": 10, **fields}
    return stages.Stage(name, **given)


class Clock:
    """Stages that take 30 seconds each, without anybody waiting."""

    def __init__(self, results: ModuleType, statuses: dict[str, str] | None = None) -> None:
        self._results, self._statuses = results, statuses or {}
        self.s, self.ran, self.limits = 0.0, [], []

    def now_s(self) -> float:
        return self.s

    def __call__(self, one: Any, limit_s: float) -> Any:
        self.ran.append(one.name)
        self.limits.append(limit_s)
        took_s = min(30.0, limit_s)
        self.s += took_s
        status = self._results.TIMED_OUT if took_s < 30 else self._results.PASSED
        return self._results.Outcome(self._statuses.get(one.name, status), took_s)


def run(all_of: list, found: Any, clock: Clock, **more: Any) -> list[str]:
    given = {"again": (), "budget_s": 1000, **more}
    late = stages.run_due(all_of, found, given["again"], given["budget_s"], clock, clock.now_s)
    return list(late)


def test_a_second_call_goes_on_where_time_ran_out(
    found: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    all_of = [stage(name) for name in "abcd"]
    clock = Clock(results)
    # b is stopped by the budget, not by its own limit: that is no answer. c has too little left.
    assert run(all_of, found, clock, budget_s=45) == ["b", "c", "d"]
    assert clock.ran == ["a", "b"]
    assert clock.limits == [45, 15]
    assert "c: no time in 0 s: 0 s were left, it wants 10" in capsys.readouterr().out
    assert run(all_of, found, clock) == []
    assert clock.ran == ["a", "b", "b", "c", "d"]
    assert run(all_of, found, clock, again=("c",)) == []
    assert clock.ran[5:] == ["c"]


def test_who_needs_a_stage_that_failed_is_blocked_until_it_passes(found: Any) -> None:
    all_of = [stage("build"), stage("test", needs=("build",))]
    run(all_of, found, Clock(results, {"build": results.FAILED}))
    assert found.outcomes["test"].status == results.BLOCKED
    assert found.outcomes["test"].reason == "needs build: FAILED"
    clock = Clock(results)
    run(all_of, found, clock)
    assert clock.ran == [], "a failure is an answer; only --again asks once more"
    run(all_of, found, clock, again=("build",))
    assert clock.ran == ["build", "test"]


def test_who_needs_what_cannot_be_here_is_skipped_with_its_reason(found: Any) -> None:
    all_of = [stage("nccl"), stage("ranks", needs=("nccl",))]
    run(all_of, found, Clock(results, {"nccl": results.SKIPPED}))
    assert found.outcomes["ranks"].status == results.SKIPPED
    assert found.outcomes["ranks"].reason.startswith("needs nccl, which was skipped")


def test_what_is_gone_is_made_again_where_somebody_needs_it(found: Any, tmp_path: Path) -> None:
    product = tmp_path / "venv"
    all_of = [stage("build", makes=product), stage("test", needs=("build",))]
    run(all_of, found, Clock(results))
    assert stages.due(all_of, found, ()) == [], "nobody needs it any more"
    assert [one.name for one in stages.due(all_of, found, ("test",))] == ["build", "test"]
    product.touch()
    assert [one.name for one in stages.due(all_of, found, ("test",))] == ["test"]


def test_a_build_that_was_stopped_goes_on_and_a_test_does_not(found: Any, tmp_path: Path) -> None:
    all_of = [stage("build", makes=tmp_path / "venv"), stage("test")]
    run(all_of, found, Clock(results, dict.fromkeys(("build", "test"), results.TIMED_OUT)))
    assert [one.name for one in stages.due(all_of, found, ())] == ["build"]


def program(text: str) -> tuple[str, ...]:
    return sys.executable, "-c", text


ANSWER = "from scripts.gpu import results as r; r.report('all well', count=3)"


def execute(tmp_path: Path, text: str, limit_s: float = 20) -> Any:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    runner = stages.Runner(tmp_path, environment)
    return runner(stage("one", command=program(text)), limit_s)


def test_an_answer_arrives(tmp_path: Path) -> None:
    outcome = execute(tmp_path, ANSWER)
    assert (outcome.status, outcome.headline, outcome.numbers) == (
        results.PASSED,
        "all well",
        {"count": 3},
    )


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("print('x')", "FAILED", "its program left no result"),
        (f"{ANSWER}; raise SystemExit(5)", "FAILED", "status 5: all well"),
        ("raise SystemExit('broken')", "FAILED", "status 1: broken"),
        ("from scripts.gpu import results as r; r.leave_out('no GPU')", "skipped", "no GPU"),
    ],
)
def test_nothing_else_passes(tmp_path: Path, text: str, status: str, reason: str) -> None:
    outcome = execute(tmp_path, text)
    assert (outcome.status, outcome.reason) == (status, reason)


def ended(pid: int) -> bool:
    """Within patience: what was killed still runs until the kernel has taken it down."""
    status, end_s = Path(f"/proc/{pid}/stat"), time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        try:
            if status.read_text().split(")")[-1].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_a_stage_ends_at_its_limit_with_all_it_has_started(tmp_path: Path) -> None:
    mine = tmp_path / "pid"
    text = (
        "import subprocess, sys, time; from pathlib import Path\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"Path({str(mine)!r}).write_text(str(child.pid)); print('waiting', flush=True)\n"
        "time.sleep(60)"
    )
    began_s = time.monotonic()
    outcome = execute(tmp_path, text, limit_s=2)
    assert outcome.status == results.TIMED_OUT
    assert outcome.last_lines == ("waiting",)
    assert time.monotonic() - began_s < PATIENCE_S
    assert ended(int(mine.read_text())), "a session of its own does not save it"
