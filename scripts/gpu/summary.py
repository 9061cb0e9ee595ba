"""The GPU check in one look: a table of its stages, and the last words of those that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scripts.gpu.results import FAILED, KEPT, TIMED_OUT, Outcome, Results
from scripts.gpu.stages import Stage

SHOWN_LINES = 12
SHOWN_CHARACTERS = 160
NOT_RUN = Outcome("not run", reason="it was not reached")


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")


def counts(stages: Sequence[Stage], results: Results) -> str:
    """How many ended how; all of them are counted."""
    found = Counter(results.outcomes.get(stage.name, NOT_RUN).status for stage in stages)
    return ", ".join(f"{count} {status}" for status, count in found.most_common())


def complete(stages: Sequence[Stage], results: Results) -> bool:
    """Whether every stage has its answer."""
    return all(results.has(stage.name) for stage in stages)


def failures(stages: Sequence[Stage], results: Results) -> list[str]:
    bad = (FAILED, TIMED_OUT)
    return [s.name for s in stages if results.outcomes.get(s.name, NOT_RUN).status in bad]


def text(stages: Sequence[Stage], results: Results) -> str:
    about = ", ".join(f"{name} {value}" for name, value in results.about.items())
    lines = ["# GPU check", "", f"{counts(stages, results)} ({about}).", ""]
    lines += [
        "| stage | question | outcome | s | what it found |",
        "| --- | --- | --- | --- | --- |",
    ]
    for stage in stages:
        outcome = results.outcomes.get(stage.name, NOT_RUN)
        found = outcome.headline if outcome.status == "passed" else outcome.reason
        cells = (stage.name, stage.title, outcome.status, f"{outcome.seconds:.0f}", found)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    waiting = [s.name for s in stages if results.outcomes.get(s.name, NOT_RUN).status not in KEPT]
    if waiting:
        lines += [
            "",
            f"Without an answer: {', '.join(waiting)}. The same command goes on with them.",
        ]
    for name in failures(stages, results):
        last = results.outcomes[name].last_lines[-SHOWN_LINES:]
        lines += [
            "",
            f"## {name}",
            "",
            "```text",
            *(line[:SHOWN_CHARACTERS] for line in last),
            "```",
        ]
    return "\n".join(lines) + "\n"
