"""Figures from the literature, each with its source and a mark; which of them a script has used.

scripts/studies/reproduce/published/*.json holds them. The marks:

- published: read in the source that is named;
- derived: follows from such figures, or from an architecture's definition, by a rule that is named;
- assumed: neither; results hinge on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "published"
PUBLISHED, DERIVED, ASSUMED = MARKS = ("published", "derived", "assumed")
OURS = "ours"  # the source of what this project derives or assumes


@dataclass(frozen=True)
class Fact:
    """A number, and the reason to believe it."""

    name: str
    value: float
    unit: str
    mark: str
    source: str  # a key of the sources
    note: str = ""

    def to_data(self) -> dict[str, object]:
        return asdict(self)


class Facts:
    """Looks figures up, and remembers which of them were looked up."""

    def __init__(self, known: Mapping[str, Fact], sources: Mapping[str, str]) -> None:
        self.known = known
        self.sources = sources
        self._used: dict[str, Fact] = {}

    def __getitem__(self, name: str) -> float:
        fact = self.known[name]
        self._used[name] = fact
        return fact.value

    def derive(self, name: str, value: float, unit: str, how: str, mark: str = DERIVED) -> float:
        """What a script works out, so that it stands among the inputs of its report."""
        self._used[name] = Fact(name, value, unit, mark, OURS, how)
        return value

    def assume(self, name: str, value: float, unit: str, why: str) -> float:
        return self.derive(name, value, unit, why, mark=ASSUMED)

    @property
    def used(self) -> list[Fact]:
        """By name."""
        return [self._used[name] for name in sorted(self._used)]

    def cited(self) -> dict[str, str]:
        """The sources of what was used."""
        keys = {fact.source for fact in self._used.values()}
        return {key: text for key, text in self.sources.items() if key in keys}


def load(folder: Path = FOLDER) -> Facts:
    """All files of the folder as one collection; none may say two things of one name."""
    sources: dict[str, str] = _read(folder / "sources.json")["sources"]
    known: dict[str, Fact] = {}
    for path in sorted(folder.glob("*.json")):
        for entry in _read(path).get("facts", ()):
            fact = Fact(**entry)
            if fact.name in known:
                raise ValueError(f"{path.name} says again what {fact.name} is; once is enough")
            if fact.mark not in MARKS or fact.source not in sources:
                raise ValueError(
                    f"{path.name}: {fact.name} has mark {fact.mark!r} and source {fact.source!r}; "
                    f"a mark is one of {', '.join(MARKS)}, a source is listed in sources.json"
                )
            known[fact.name] = fact
    return Facts(known, sources)


def _read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if data.get("version") != 1:
        raise ValueError(f"{path.name} is of version {data.get('version')}; 1 is known here")
    return data
