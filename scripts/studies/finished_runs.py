"""Finished runs of a study: a file for each while it trains, one line for each beside its page.

So a study goes on where it was interrupted, also on another machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from scripts.studies.pool import write

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")


def path_of(run: DataclassInstance, folder: Path, *named: str) -> Path:
    """Of its outcome. `named`: the fields that a reader knows it by."""
    text = json.dumps(asdict(run), sort_keys=True)
    name = "-".join(str(getattr(run, field)) for field in named).replace(" ", "-")
    return folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"


def finished(paths: Mapping[R, Path]) -> dict[R, Any]:
    """The outcomes, as far as they are there."""
    return {
        run: json.loads(path.read_text("utf-8")) for run, path in paths.items() if path.exists()
    }


def restore(outcomes: Mapping[Path, Any]) -> None:
    """Finished runs again, of what was kept."""
    for path, outcome in outcomes.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, outcome)


def keep(outcomes: Mapping[R, Mapping[str, Any]], path: Path) -> None:
    """One line for each run."""
    rows = [json.dumps({**asdict(run), **outcome}) for run, outcome in outcomes.items()]
    path.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


def kept(path: Path, kind: type[R]) -> dict[R, dict[str, Any]]:
    """What :func:`keep` wrote of runs of this kind; nothing if there is no such file."""
    rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    names = {field.name for field in fields(kind)}
    return {
        kind(**{k: v for k, v in row.items() if k in names}): {
            k: v for k, v in row.items() if k not in names
        }
        for row in rows
    }
