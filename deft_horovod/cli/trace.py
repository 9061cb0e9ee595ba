"""deft-profile trace: one trace of what all ranks have written."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from deft_horovod.base.trace import Event
from deft_horovod.cli.output import Output, require_free
from deft_horovod.errors import DeftError, explain
from deft_horovod.job.result_file import write

_FILE: Final = re.compile(r"rank\.(\d+)\.json")
_CLOCK: Final = "deft_clock"
_MS: Final = 1e-3


@dataclass(frozen=True)
class Summary:
    """What there is in a trace."""

    ranks: int
    steps: int  # of the rank with the fewest
    messages: int
    updates: int  # messages whose arrow has an end
    clock_error_us: float  # of the rank whose clock is known least
    seconds: float


@click.command(name="trace")
@click.argument(
    "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="FOLDER"
)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("trace.json"),
    show_default=True,
    help="Where the trace goes.",
)
@click.option("--force", is_flag=True, help="Overwrite a trace that is there.")
@click.option("--json", "as_json", is_flag=True, help="What is in it, as JSON on stdout.")
def command(folder: Path, path: Path, force: bool, as_json: bool) -> None:
    """Merges the traces of all ranks of a job into one that Perfetto and chrome://tracing open.

    FOLDER is the one that was given to the job: DEFT_TRACE=FOLDER horovodrun ... python train.py
    """
    require_free(path, force=force)
    events = merged(folder)
    write(path, _document(events))
    found = summary(events)
    Output(as_json=as_json).show(asdict(found), _words(found))


def merged(folder: Path) -> list[Event]:
    """The events of all ranks, by rank."""
    ranks = {int(m[1]): p for p in folder.iterdir() if (m := _FILE.fullmatch(p.name))}
    if not ranks:
        raise DeftError(
            explain(
                f"there is no trace in the folder {folder}",
                observed=", ".join(sorted(p.name for p in folder.iterdir())[:5]) or "no file",
                expected="rank.0.json and so on",
                action=f"run the job with DEFT_TRACE={folder}",
            )
        )
    return [event for rank in sorted(ranks) for event in _events(ranks[rank])]


def _events(path: Path) -> Iterator[Event]:
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        text = line.strip().removesuffix(",")
        if text in ("", "[", "]"):
            continue
        try:
            event = json.loads(text)
        except json.JSONDecodeError as error:
            if number == len(lines):
                return  # the rank was killed while it wrote
            raise _foreign(path, number, str(error)) from None
        if not isinstance(event, dict) or "ph" not in event or "pid" not in event:
            raise _foreign(path, number, text[:80])
        yield event


def _foreign(path: Path, number: int, observed: str) -> DeftError:
    return DeftError(
        explain(
            f"line {number} of {path} is no event of a trace",
            observed=observed,
            action="trace the job again, into another folder",
        )
    )


def _document(events: Sequence[Event]) -> str:
    body = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    return f'{{"displayTimeUnit":"ms","traceEvents":[\n{body}\n]}}\n'


def summary(events: Iterable[Event]) -> Summary:
    """Counts what a person would look for."""
    steps: Counter[int] = Counter()
    of_kind: Counter[tuple[str, str]] = Counter()
    times: list[float] = []
    errors = [0.0]
    for event in events:
        of_kind[event["ph"], event.get("cat", "")] += 1
        steps[event["pid"]] += event.get("cat") == "step"
        if event.get("name") == _CLOCK:
            errors.append(event["args"]["error_us"])
        if "ts" in event:
            times += [event["ts"], event["ts"] + event.get("dur", 0.0)]
    return Summary(
        ranks=len(steps),
        steps=min(steps.values(), default=0),
        messages=of_kind["X", "message"],
        updates=of_kind["f", "gradient"],
        clock_error_us=max(errors),
        seconds=(max(times) - min(times)) / 1e6 if times else 0.0,
    )


def _words(found: Summary) -> str:
    clocks = (
        f"clocks agree within {found.clock_error_us * _MS:.2f} ms"
        if found.clock_error_us
        else "one clock"
    )
    parts: dict[str, Any] = {
        "ranks": found.ranks,
        "steps": found.steps,
        "messages": found.messages,
        "arrows to an update": found.updates,
    }
    counted = ", ".join(f"{count} {what}" for what, count in parts.items())
    return f"{counted}, {found.seconds:.1f} s, {clocks}"
