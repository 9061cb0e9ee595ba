"""Metrics as JSON, one line each time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class JsonLines:
    """All that ``stats()`` says. A job that goes on writes below what is there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("a", encoding="utf-8"):
            pass

    def write(self, stats: Mapping[str, Any], time_s: float) -> None:
        line = json.dumps({"time_s": round(time_s, 3), **stats})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
