"""The command line and the verdicts that the scripts of this room share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.places import ROOT
from scripts.studies.reproduce.facts import Facts, load
from scripts.studies.reproduce.page import page
from scripts.studies.reproduce.reproduction import Arm, Job, Network, cells, gain, known_arms

FOLDER = ROOT / "docs" / "studies" / "reproduced"
STAND_IN = "another policy, for comparison"
CLOSE = 0.10  # of a published figure; no simulation should be expected to come closer

Cells = Sequence[Mapping[str, Any]]
Claim = dict[str, str]
Table = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """One published comparison."""

    name: str
    title: str
    intro: str
    jobs: Callable[[Facts], list[Job]]
    networks: Callable[[Facts], list[Network]]
    claims: Callable[[Cells, Facts], list[Claim]]
    notes: str
    across: str = "models"  # what the columns of its tables are
    arms: Callable[[], dict[str, Arm]] = known_arms
    tables: Callable[[Cells, Facts], list[Table]] = field(default=lambda _cells, _facts: [])


def up_to(
    cells: Cells, arm: str, rival: str, published: float, said: str, *, stand_in: bool = False
) -> Claim:
    """A headline that says how much faster one is at most.

    `stand_in`: the arm is not the policy that the headline is about, so nothing can be met.
    """
    gains = [(found, cell) for cell in cells if (found := gain(cell, arm, rival)) is not None]
    claim = {"said": said, "published": f"up to {published:.2f}x"}
    if not gains:
        return {**claim, "ours": "-", "verdict": "not simulated: there is no such policy here"}
    best, where = max(gains, key=lambda pair: pair[0])
    place = f"{where['model']}, {where['network']}"
    judged = STAND_IN if stand_in else verdict(best, published)
    return {**claim, "ours": f"up to {best:.2f}x ({place})", "verdict": judged}


def verdict(ours: float, published: float) -> str:
    """A speed-up beside a published one."""
    if abs(ours / published - 1.0) <= CLOSE:
        return f"met (within {CLOSE:.0%})"
    return "more than published" if ours > published else "less than published"


def collected(comparison: Comparison, options: argparse.Namespace, facts: Facts) -> dict[str, Any]:
    """The data of a report, or of the part of it that was asked for."""
    jobs = _chosen(comparison.jobs(facts), options.models)
    networks = _chosen(comparison.networks(facts), options.networks)
    arms = comparison.arms()
    if options.policies:
        arms = {name: arms[name] for name in arms if name in options.policies}
    found = list(_shown(cells(jobs, networks, arms), len(jobs) * len(networks)))
    claims = comparison.claims(found, facts)
    tables = comparison.tables(found, facts)
    return {
        "version": 1,
        "name": comparison.name,
        "title": comparison.title,
        "intro": comparison.intro,
        "across": comparison.across,
        "arms": {name: _about(arm) for name, arm in arms.items()},
        "models": {job.name: job.title for job in jobs},
        "networks": {network.name: network.title for network in networks},
        "claims": claims,
        "tables": tables,
        "cells": found,
        "notes": comparison.notes,
        "inputs": [fact.to_data() for fact in facts.used],
        "sources": facts.cited(),
    }


def _about(arm: Arm) -> dict[str, object]:
    return {"title": arm.title, "kind": arm.kind, "start_up_share": arm.start_up_share}


def _chosen(offered: list[Any], names: Sequence[str] | None) -> list[Any]:
    known = [one.name for one in offered]
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: not part of it; there are {', '.join(known)}")
    return [one for one in offered if not names or one.name in names]


def _shown(found: Iterator[dict[str, Any]], count: int) -> Iterator[dict[str, Any]]:
    for number, cell in enumerate(found, 1):
        if sys.stderr.isatty():
            place = f"{cell['model']}, {cell['network']}"
            print(f"\r\x1b[K{number} of {count}: {place}", end="", file=sys.stderr, flush=True)
        yield cell
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def main(comparison: Comparison, arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=f"{comparison.title}, in the simulator. Writes NAME.md and NAME.json; a part "
        "of it is printed instead, unless --output is given."
    )
    parser.add_argument("--output", type=Path, help=f"folder of the report (default: {FOLDER})")
    parser.add_argument("--json", action="store_true", help="print the data, write nothing")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="these only")
    parser.add_argument("--networks", nargs="+", metavar="NAME", help="these only")
    parser.add_argument("--policies", nargs="+", metavar="NAME", help="these rows only")
    options = parser.parse_args(arguments)
    try:
        data = collected(comparison, options, load())
    except ValueError as error:
        parser.error(str(error))
    if options.json:
        print(written(data))
    elif options.output is None and (options.models or options.networks or options.policies):
        print(page(data))
    else:
        folder = options.output or FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{comparison.name}.json").write_text(written(data) + "\n", encoding="utf-8")
        (folder / f"{comparison.name}.md").write_text(page(data), encoding="utf-8")
        print(f"wrote {folder / comparison.name}.md and .json")
    return 0


def written(data: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of a list."""
    lines = []
    for key, value in data.items():
        if isinstance(value, list):
            inside = ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in value)
            text = f"[\n  {inside}\n ]" if value else "[]"
        else:
            text = json.dumps(value, ensure_ascii=False)
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}"
