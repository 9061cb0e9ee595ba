"""Runs the stages of the GPU check one after the other, within a budget of time.

A stage that has its answer is not run again, unless it is asked for. One that makes something
(a build) runs again where that is gone and another stage that is to run needs it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.gpu.results import (
    BLOCKED,
    FAILED,
    LEFT_OUT,
    NO_TIME,
    PASSED,
    RESULT_VARIABLE,
    SKIPPED,
    TIMED_OUT,
    Outcome,
    Results,
)

ENDED_BY_TIMEOUT = 124, 137  # exit statuses of timeout(1)
PATIENCE_S = 10  # between being asked to end and being killed
LAST_LINES = 40
MARK = "GPU_CHECK_STAGE"


@dataclass(frozen=True)
class Stage:
    """One question, and the command that answers it."""

    name: str
    title: str
    command: tuple[str, ...]
    limit_s: float
    least_s: float  # with less time left it is not begun
    needs: tuple[str, ...] = ()
    makes: Path | None = None  # what later stages need of it
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None  # where it runs

    def made(self) -> bool:
        return self.makes is None or self.makes.exists()


def due(stages: Sequence[Stage], results: Results, again: Collection[str]) -> list[Stage]:
    """Those that have to run, in order."""
    wanted: set[str] = set()
    needed: set[str] = set()
    for stage in reversed(stages):
        status = results.outcomes[stage.name].status if results.has(stage.name) else ""
        # A build that was stopped goes on from the files that it had made.
        unfinished = status == TIMED_OUT and stage.makes is not None
        anew = not status or unfinished or stage.name in again
        passed = status == PASSED
        if anew or (passed and stage.name in needed and not stage.made()):
            wanted.add(stage.name)
            needed.update(stage.needs)
    return [stage for stage in stages if stage.name in wanted]


def held_up(stage: Stage, results: Results) -> Outcome | None:
    """What becomes of a stage that cannot begin; None when it can."""
    for name in stage.needs:
        needed = results.outcomes.get(name)
        if needed is None:
            return Outcome(BLOCKED, reason=f"needs {name}, which has not run")
        if needed.status == SKIPPED:
            return Outcome(SKIPPED, reason=f"needs {name}, which was skipped: {needed.reason}")
        if needed.status != PASSED:
            return Outcome(BLOCKED, reason=f"needs {name}: {needed.status}")
    return None


Execute = Callable[[Stage, float], Outcome]


def run_due(
    stages: Sequence[Stage],
    results: Results,
    again: Collection[str],
    budget_s: float,
    execute: Execute,
    now_s: Callable[[], float] = time.monotonic,
) -> list[str]:
    """Runs them; the names of those for which no time was left."""
    end_s = now_s() + budget_s
    late = []
    for stage in due(stages, results, again):
        held, left_s = held_up(stage, results), end_s - now_s()
        if held is not None:
            outcome = held
        elif left_s < stage.least_s:
            why = f"{left_s:.0f} s were left, it wants {stage.least_s:.0f}"
            outcome = Outcome(NO_TIME, reason=why)
            late.append(stage.name)
        else:
            outcome = execute(stage, min(stage.limit_s, left_s))
            if outcome.status == TIMED_OUT and left_s < stage.limit_s:
                why = f"it was stopped after {outcome.seconds:.0f} s, when the budget was used up"
                outcome = Outcome(NO_TIME, outcome.seconds, why, last_lines=outcome.last_lines)
                late.append(stage.name)
        results.add(stage.name, outcome)
        print(line_of(stage, outcome), flush=True)
    return late


def line_of(stage: Stage, outcome: Outcome) -> str:
    said = outcome.headline or outcome.reason
    return f"{stage.name}: {outcome.status} in {outcome.seconds:.0f} s: {said}"


class Runner:
    """Executes stages; keeps the whole output of each in a file."""

    def __init__(self, work: Path, environment: Mapping[str, str]) -> None:
        self._work, self._environment = work, environment

    def log_of(self, name: str) -> Path:
        return self._work / "logs" / f"{name}.log"

    def __call__(self, stage: Stage, limit_s: float) -> Outcome:
        result, log = self._work / "answers" / f"{stage.name}.json", self.log_of(stage.name)
        for path in (result, log):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        mark = uuid.uuid4().hex
        environment = {**self._environment, **stage.environment}
        environment |= {RESULT_VARIABLE: str(result), MARK: mark}
        limit = ["timeout", "-k", str(PATIENCE_S), f"{limit_s:.0f}"]
        began_s = time.monotonic()
        with log.open("w", encoding="utf-8") as output:
            try:
                status = subprocess.run(
                    [*limit, *stage.command],
                    cwd=stage.folder,
                    env=environment,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    check=False,
                ).returncode
            finally:
                kill_marked(mark)
        return outcome_of(status, result, log, time.monotonic() - began_s)


def kill_marked(mark: str) -> None:
    """What a stage has left running, also in sessions of their own, as launchers make them.

    Again until none is found: one may have started another while we looked, and a signal only
    asks. The next stage is not to share the machine with what is still on its way out.
    """
    end_s = time.monotonic() + PATIENCE_S
    while (left := marked(mark)) and time.monotonic() < end_s:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def marked(mark: str) -> list[int]:
    """Processes that bear it; what has ended shows no environment any more."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or belongs to another user
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def outcome_of(status: int, result: Path, log: Path, seconds: float) -> Outcome:
    """From what a stage's program has left."""
    said: dict[str, Any] = {"headline": "", "numbers": {}}
    if result.is_file():
        said = json.loads(result.read_text(encoding="utf-8"))
    lines = tuple(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:])
    headline, numbers = said["headline"], said["numbers"]
    seconds = round(seconds, 1)
    if status == 0 and result.is_file():
        return Outcome(PASSED, seconds, "", headline, numbers)
    if status == 0:
        return Outcome(FAILED, seconds, "its program left no result", "", {}, lines)
    if status == LEFT_OUT:
        return Outcome(SKIPPED, seconds, headline, "", numbers, lines)
    if status in ENDED_BY_TIMEOUT:
        return Outcome(
            TIMED_OUT, seconds, f"no end within {seconds:.0f} s", headline, numbers, lines
        )
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    reason = f"status {status}: {headline or last}"
    return Outcome(FAILED, seconds, reason, headline, numbers, lines)
