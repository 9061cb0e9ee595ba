"""What the stages of the GPU check found: one JSON file, whole after every stage.

A stage's program leaves its numbers with `report`; the check adds how it ended. Programs that
cannot do their work where they run say why with `leave_out`: that is no success.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

VERSION = 1
FILE = "results.json"
RESULT_VARIABLE = "GPU_CHECK_RESULT"  # where a stage's program leaves its numbers
LEFT_OUT = 77  # exit status of a program that cannot do its work here

PASSED, FAILED, TIMED_OUT, SKIPPED = "passed", "FAILED", "TIMED OUT", "skipped"
BLOCKED, NO_TIME = "blocked", "no time"
# A stage that ended in one of these has its answer; the others run in the next call.
KEPT = (PASSED, FAILED, TIMED_OUT, SKIPPED)


@dataclass(frozen=True)
class Outcome:
    """How a stage ended."""

    status: str
    seconds: float = 0.0
    reason: str = ""  # why it did not pass
    headline: str = ""  # the one thing to know
    numbers: dict[str, Any] = field(default_factory=dict)
    last_lines: tuple[str, ...] = ()  # of its output, unless it passed
    revision: str = ""  # of the tree that was checked


class ResultsError(RuntimeError):
    """The file of results is of no use; the message says what to do."""


class Results:
    """The outcomes of all stages so far, by name."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path, self.about = path, about
        self.outcomes: dict[str, Outcome] = {}

    @classmethod
    def open(cls, path: Path, about: dict[str, Any], earlier: Path | None = None) -> Results:
        """Goes on from the file, or from that of an earlier call, if there is one."""
        results = cls(path, about)
        for source in (path, earlier):
            if source is not None and source.is_file():
                results._read(source)
                break
        return results

    def _read(self, source: Path) -> None:
        try:
            data = json.loads(source.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ResultsError(f"{source} is no JSON ({error}); delete it to begin anew") from error
        if data.get("version") != VERSION:
            raise ResultsError(
                f"{source} is of version {data.get('version')}, expected {VERSION}; delete it to "
                "begin anew"
            )
        before, now = data["about"].get("device"), self.about.get("device")
        if before != now:
            raise ResultsError(
                f"{source} is of a check on {before}, this one is on {now}; give another --out"
            )
        for name, outcome in data["stages"].items():
            fields = {**outcome, "last_lines": tuple(outcome["last_lines"])}
            self.outcomes[name] = Outcome(**fields)

    def has(self, name: str) -> bool:
        """Whether the stage has its answer."""
        return name in self.outcomes and self.outcomes[name].status in KEPT

    def add(self, name: str, outcome: Outcome) -> None:
        """An answer that is kept is not replaced by none."""
        if outcome.status in KEPT or not self.has(name):
            self.outcomes[name] = replace(outcome, revision=self.about.get("revision", ""))
            self.save()

    def save(self) -> None:
        data = {
            "version": VERSION,
            "about": self.about,
            "stages": {name: asdict(outcome) for name, outcome in self.outcomes.items()},
        }
        write_whole(self.path, json.dumps(data, indent=1) + "\n")


def write_whole(path: Path, text: str) -> None:
    """The old text or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def report(headline: str, **numbers: Any) -> None:
    """What a stage's program found; printed where the caller asked for no file."""
    text = json.dumps({"headline": headline, "numbers": numbers}, default=str)
    path = os.environ.get(RESULT_VARIABLE)
    if path:
        write_whole(Path(path), text)
    print(headline)


def leave_out(reason: str, **numbers: Any) -> NoReturn:
    """Ends a stage's program that cannot do its work here."""
    report(reason, **numbers)
    sys.exit(LEFT_OUT)
