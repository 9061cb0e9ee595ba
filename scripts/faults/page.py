"""The page of the fault campaign: what its records say, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

_ENDED = (
    "As expected: every other rank ended by itself, not with status 0, and with an error that "
    "names the reason; nothing was left behind. The last columns are the longest times from the "
    "fault to a rank's error, and to its end. Elastic jobs go on without the rank, and with it "
    "again; trainings over a link that stalls come out as over any other. For these the last "
    "column is what the job took."
)
_OUTCOMES = ("as expected", "silent difference", "error", "hang")


def outcome(record: Record) -> str:
    """One of _OUTCOMES."""
    said = "\n".join(record["troubles"])
    if not said:
        return "as expected"
    if "did not end" in said or "was killed after" in said:
        return "hang"
    return "error" if "Traceback" in said or record["form"] == "fatal" else "silent difference"


def seed_ranges(seeds: Iterable[int]) -> str:
    """`1-3, 7`: the same numbers, shorter."""
    runs: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "| --- " * len(header) + "|"]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def _commits(records: Sequence[Record]) -> str:
    """Those that records were made with, and how many."""
    count = Counter(record.get("commit", "unknown") for record in records)
    return ", ".join(f"{commit} ({number} jobs or trainings)" for commit, number in count.items())


def _by(records: Sequence[Record], key: str) -> list[list[Any]]:
    """A row for each kind: trainings, steps, outcomes. A training is of several kinds."""
    counts: dict[str, Counter[str]] = {}
    for record in records:
        kinds = record[key]
        for kind in [kinds] if isinstance(kinds, str) else kinds or ["nothing besides training"]:
            count = counts.setdefault(kind, Counter())
            count["trainings"] += 1
            count["steps"] += record["steps"]
            count[outcome(record)] += 1
    return [
        [kind, count["trainings"], f"{count['steps']:,}", *(count[name] for name in _OUTCOMES)]
        for kind, count in sorted(counts.items())
    ]


def _survived(records: Sequence[Record]) -> list[str]:
    steps = sum(record["steps"] for record in records)
    faulty = sum(record["steps"] for record in records if record["kinds"])
    late = [record for record in records if not record["exact"]]
    checks: Counter[str] = Counter()
    for record in records:
        checks.update(record["checks"])
    header = ["", "trainings", "steps", *_OUTCOMES]
    said = (
        f"{len(records)} trainings of {steps:,} steps on two ranks, {faulty:,} of these steps in "
        f"trainings with something of the first table in them. In {len(late)} trainings updates "
        f"came late. Compared: replicas by hash {checks['replicas']:,} times, parameters with "
        f"plain torch bit for bit {checks['reference']:,} times, what was produced with what was "
        f"applied {checks['conservation']:,} times."
    )
    return [
        "## Faults and habits that a training survives",
        "",
        said,
        "",
        *table(["kind", *header[1:]], _by(records, "kinds")),
        "",
        *table(["policy", *header[1:]], _by(records, "policy")),
        "",
        *table(["model", *header[1:]], _by(records, "family")),
        "",
        *table(["optimizer", *header[1:]], _by(records, "optimizer")),
    ]


def _fatal(records: Sequence[Record]) -> list[str]:
    rows = []
    for kind in sorted({record["kind"] for record in records}):
        mine = [record for record in records if record["kind"] == kind]
        ended = Counter(outcome(record) for record in mine)
        longest = [max(record[key] for record in mine) for key in ("error_s", "end_s")]
        counted = [ended[name] for name in ("as expected", "error", "hang")]
        rows.append([kind, len(mine), *counted, *(f"{seconds:.1f} s" for seconds in longest)])
    header = ["fault", "jobs", "as expected", "otherwise", "hang", "last error", "last end"]
    return [
        "## Faults with a job of their own",
        "",
        _ENDED,
        "",
        *table(header, rows),
    ]


def _failed(records: Sequence[Record]) -> list[str]:
    bad = [record for record in records if record["troubles"]]
    if not bad:
        return ["## Failed", "", "None."]
    lines = ["## Failed", ""]
    for record in bad:
        first = str(record["troubles"][0]).strip().splitlines()
        lines.append(f"- `{record['command']}` ({record['title']}): {first[-1][:160]}")
    return lines


def page(records: Sequence[Record], facts: Mapping[str, str], notes: str) -> str:
    """All of it. `notes` is what people have written: what was found, and what became of it."""
    survived = [record for record in records if record["form"] == "seed"]
    fatal = [record for record in records if record["form"] == "fatal"]
    lines = [
        "# Fault campaign",
        "",
        "Made by `scripts/faults/campaign.py`; what it draws and checks is in `tests/faults`.",
        "",
        *table(["", ""], facts.items()),
        f"| commits of deft_horovod | {_commits(records)} |",
        f"| seeds | {seed_ranges(record['seed'] for record in survived)} |",
        f"| seeds of fatal faults | {seed_ranges(record['seed'] for record in fatal)} |",
        "",
        *_survived(survived),
        "",
        *_fatal(fatal),
        "",
        *_failed(records),
        "",
        notes.strip(),
    ]
    return "\n".join(lines).rstrip() + "\n"
