"""How a profiled script ended, on one rank; left in a folder for the process that started it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class ExitReport:
    """What happened, in words, and the exit status that says so."""

    status: int
    message: str

    def leave(self, folder: Path, rank: int) -> None:
        """For :meth:`found`."""
        draft = folder / f".rank.{rank}.part"
        draft.write_text(json.dumps(asdict(self)), encoding="utf-8")
        draft.replace(folder / f"rank.{rank}.json")

    @classmethod
    def found(cls, folder: Path) -> ExitReport | None:
        """Of all ranks the first that went wrong, else the lowest; None: no rank left one."""
        files = sorted(folder.glob("rank.*.json"), key=lambda path: path.stat().st_mtime_ns)
        outcomes = {path: cls(**json.loads(path.read_text(encoding="utf-8"))) for path in files}
        wrong = [outcome for outcome in outcomes.values() if outcome.status]
        return wrong[0] if wrong else outcomes.get(folder / "rank.0.json")


def tell_progress(folder: Path, done: int, needed: int) -> None:
    """Steps that are done, and that are needed."""
    draft = folder / ".progress.part"
    draft.write_text(f"{done} {needed}", encoding="utf-8")
    draft.replace(folder / "progress")


def progress(folder: Path) -> tuple[int, int]:
    """What was told last; (0, 0): nothing yet."""
    path = folder / "progress"
    if not path.is_file():
        return 0, 0
    done, needed = path.read_text(encoding="utf-8").split()
    return int(done), int(needed)
