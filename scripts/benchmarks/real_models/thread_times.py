"""Which threads of this process took how much CPU time: Linux's /proc/self/task.

Threads have no names that tell whose they are. They belong to whatever was being started when they
first appeared.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TASKS = Path("/proc/self/task")
_USER, _SYSTEM = 11, 12  # of the fields behind the name
KERNEL = "kernel"


def read(tasks: Path = _TASKS) -> dict[int, tuple[float, float]]:
    """(user, kernel) ms of each thread that lives."""
    tick_ms = 1e3 / os.sysconf("SC_CLK_TCK")
    found = {}
    for folder in tasks.iterdir():
        try:
            text = (folder / "stat").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        numbers = text.rpartition(")")[2].split()
        found[int(folder.name)] = (
            tick_ms * float(numbers[_USER]),
            tick_ms * float(numbers[_SYSTEM]),
        )
    return found


@dataclass
class ThreadTimes:
    """Whose threads are which, and what they have taken so far."""

    owners: dict[int, str] = field(default_factory=dict)

    def started(self, owner: str) -> None:
        """What is new since the last call belongs to that owner."""
        for thread in read():
            self.owners.setdefault(thread, owner)

    def now(self) -> dict[str, float]:
        """CPU time of each owner in user mode and of all of them in the kernel, in ms."""
        totals: dict[str, float] = {KERNEL: 0.0}
        for thread, (user_ms, system_ms) in read().items():
            owner = self.owners.get(thread, "later")
            totals[owner] = totals.get(owner, 0.0) + user_ms
            totals[KERNEL] += system_ms
        return totals


def between(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Threads that have ended since are not in it."""
    return {owner: max(0.0, ms - before.get(owner, 0.0)) for owner, ms in after.items()}
