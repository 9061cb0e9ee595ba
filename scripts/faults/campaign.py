"""The long form of the fault campaign: seeds of tests/faults, one job for many, until time is up.

  campaign.py --seeds 7                       one training again, as a failure has printed it
  campaign.py --fatal 7                       one fault with a job of its own again
  campaign.py --seeds 1-2000 --fatal 1-60 --minutes 20 --record build/campaign.jsonl
  campaign.py --record build/campaign.jsonl --report docs/studies/benchmarks/faults.md

With --record it goes on where it was stopped: seeds that are in there are not run again. A report
is made of all that is in the record; what people have written under its last heading is kept.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scripts.faults.page import page
from scripts.places import ROOT
from tests.faults.fatal import run_fatal, why_not
from tests.faults.jobs import Outcome, run_seeds
from tests.faults.scripts.draw import draw
from tests.faults.scripts.draw_fatal import draw_fatal

SEEDS_A_JOB = 25
START_S, SEED_S = 60, 20  # what a job may take: to start, and for each seed
NOTES = "## What it found"

Record = dict[str, Any]


def parse_seeds(text: str) -> list[int]:
    """`1-3,7` -> 1, 2, 3, 7."""
    seeds: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def record_of(outcome: Outcome) -> Record:
    """What is kept of one training."""
    script, seen = draw(outcome.seed), outcome.by_rank[0]
    return {
        "form": "seed",
        "seed": outcome.seed,
        "title": script.title(),
        "command": outcome.command,
        "family": script.family,
        "policy": script.policy,
        "optimizer": script.optimizer,
        "kinds": list(script.kinds()),
        "steps": seen.get("steps", 0),
        "exact": seen.get("exact", True),
        "checks": seen.get("checks", {}),
        "seconds": seen.get("seconds", 0.0),
        "troubles": list(outcome.troubles),
    }


def fatal_record(seed: int) -> Record:
    """Runs one fatal fault."""
    ended = run_fatal(draw_fatal(seed))
    return {
        "form": "fatal",
        "seed": seed,
        "title": ended.fatal.title(),
        "command": ended.command,
        "kind": ended.fatal.kind,
        "error_s": ended.error_s,
        "end_s": ended.end_s,
        "troubles": list(ended.troubles),
    }


class Kept:
    """Records in a file of JSON lines, one written as soon as it is known."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        text = path.read_text(encoding="utf-8") if path is not None and path.is_file() else ""
        self.records: list[Record] = [json.loads(line) for line in text.splitlines()]

    def add(self, record: Record) -> None:
        self.records.append(record)
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    def missing(self, form: str, seeds: Sequence[int]) -> list[int]:
        """Those of these that are not in it."""
        known = {record["seed"] for record in self.records if record["form"] == form}
        return [seed for seed in seeds if seed not in known]


def run_all(seeds: Sequence[int], in_time: Callable[[], bool]) -> Iterator[Record]:
    """Trainings, many in a job. One that ends its job with an error has the next job begin after
    it; a job that runs none at all ends the campaign."""
    rest = list(seeds)
    while rest and in_time():
        chunk = rest[:SEEDS_A_JOB]
        outcomes = run_seeds(chunk, START_S + SEED_S * len(chunk))
        if not outcomes:
            raise SystemExit(f"a job with seeds {chunk[0]}-{chunk[-1]} ran none of them")
        for outcome in outcomes:
            yield record_of(outcome)
        done = {outcome.seed for outcome in outcomes}
        rest = [seed for seed in rest if seed not in done]


def run_all_fatal(seeds: Sequence[int], in_time: Callable[[], bool]) -> Iterator[Record]:
    """Fatal faults, each with a job of its own."""
    for seed in seeds:
        if not in_time():
            return
        reason = why_not(draw_fatal(seed))
        if reason is None:
            yield fatal_record(seed)
        else:
            print(f"fatal {seed} skipped: {reason}", flush=True)


def say(record: Record, began_s: float, steps: int) -> None:
    """A line for each; all findings where something is wrong."""
    word = "FAILED" if record["troubles"] else "ok"
    spent_s = time.monotonic() - began_s
    print(f"{spent_s:6.0f} s {steps:6d} steps  {record['form']} {record['seed']} {word}", end="")
    print(f"  {record['title']}", flush=True)
    if record["troubles"]:
        print("\n".join(record["troubles"]))
        print(f"repeat it with: {record['command']}", flush=True)


def commit_here() -> str:
    """What is tested."""
    words = ["git", "-C", str(ROOT), "log", "-1", "--format=%h"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "not a git checkout"


def facts() -> dict[str, str]:
    """The environment of the campaign."""
    import horovod
    import torch

    return {
        "Horovod, torch": f"{horovod.__version__}, {torch.__version__}",
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, 2 ranks over Gloo on loopback",
    }


def write_report(path: Path, records: Sequence[Record]) -> None:
    """Anew, but for what people have written at its end."""
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    notes = NOTES + old.partition(NOTES)[2] if NOTES in old else ""
    path.write_text(page(records, facts(), notes), encoding="utf-8")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--seeds", type=parse_seeds, default=[], help="trainings, such as 1-50,77")
    made.add_argument("--fatal", type=parse_seeds, default=[], help="fatal faults, such as 1-22")
    made.add_argument("--minutes", type=float, default=float("inf"), help="begin no job later")
    made.add_argument("--record", type=Path, help="JSON lines to write, and to go on from")
    made.add_argument("--report", type=Path, help="page to write")
    return made


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    kept, began_s = Kept(options.record), time.monotonic()
    commit = commit_here()
    steps, failed = 0, 0

    def in_time() -> bool:
        return time.monotonic() - began_s < 60 * float(options.minutes)

    forms = (("seed", options.seeds, run_all), ("fatal", options.fatal, run_all_fatal))
    for form, seeds, run in forms:
        for record in run(kept.missing(form, seeds), in_time):
            kept.add({**record, "commit": commit})
            steps += record.get("steps", 0)
            failed += bool(record["troubles"])
            say(record, began_s, steps)
    if options.report is not None:
        write_report(options.report, kept.records)
    print(f"{failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
