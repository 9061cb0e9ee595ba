"""Metrics as a table."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

# A table cannot grow columns later, so it has those that every job has.
COLUMNS: Final = (
    *("time_s", "steps", "phase", "running", "plan", "plans", "step_us", "compute_us"),
    *("exposed_us", "bytes", "messages", "communication_us", "buffer_bytes", "rest_bytes"),
    *("late", "dropped", "dropped_rests"),
)


class CsvFile:
    """A job that goes on writes below what is there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("a", newline="", encoding="utf-8") as file:
            if file.tell() == 0:
                csv.writer(file).writerow(COLUMNS)

    def write(self, stats: Mapping[str, Any], time_s: float) -> None:
        row = {**stats, "time_s": f"{time_s:.3f}"}
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([row.get(column) for column in COLUMNS])
