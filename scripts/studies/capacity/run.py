"""Runs the study: python -m scripts.studies.capacity.run light|heavy|consolidation|scale|page

Every part writes NAME.json into docs/studies/capacity; instances that are there already are kept.
`page` makes the report and the picture of all parts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from scripts.places import ROOT
from scripts.studies.capacity.instances import applications, bags, kinds
from scripts.studies.capacity.measure import packings, schedules
from scripts.studies.capacity.page import write_page
from scripts.studies.capacity.scale import scale

FOLDER = ROOT / "docs" / "studies" / "capacity"
SEEDS = 100
EFFORT = 1.5  # of each instance


def light(seed: int) -> dict[str, Any]:
    """Own machines nearly suffice."""
    return schedules(bags(seed, 20, kinds(seed, 3, 8), 1.6), EFFORT)


def heavy(seed: int) -> dict[str, Any]:
    """Own machines are far from enough."""
    return schedules(bags(seed, 40, kinds(seed, 3, 8), 4.0), EFFORT)


def consolidation(seed: int) -> dict[str, Any]:
    return packings(applications(seed, 15), EFFORT)


PARTS: Mapping[str, Callable[[int], dict[str, Any]]] = MappingProxyType(
    {"light": light, "heavy": heavy, "consolidation": consolidation}
)


def run(name: str, folder: Path, seeds: int) -> None:
    """Instance by instance, so that it can be broken off."""
    path = folder / f"{name}.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    for seed in range(len(found), seeds):
        found.append({"seed": seed, **PARTS[name](seed)})
        inside = ",\n".join(json.dumps(one) for one in found)
        path.write_text(f"[\n{inside}\n]\n", encoding="utf-8")
        print(f"{name}: {seed + 1} of {seeds}", flush=True)


def main(arguments: Sequence[str]) -> int:
    known = (*PARTS, "scale", "page")
    if len(arguments) != 1 or arguments[0] not in known:
        print(f"usage: python -m scripts.studies.capacity.run {'|'.join(known)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    if arguments[0] == "scale":
        (FOLDER / "scale.json").write_text(json.dumps(scale(), indent=1) + "\n", encoding="utf-8")
    elif arguments[0] == "page":
        write_page(FOLDER)
    else:
        run(arguments[0], FOLDER, SEEDS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
