"""CapacityFile: jobs and machines of one YAML file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deft_horovod.capacity.input.entry import Entry, load
from deft_horovod.capacity.input.job_entry import JobEntry, kept_job, scheduled_job
from deft_horovod.capacity.input.machine_entry import MachineEntry, own_machine, rented_machine


@dataclass(frozen=True)
class CapacityFile:
    """Own machines come before those to rent."""

    jobs: tuple[JobEntry, ...]
    machines: tuple[MachineEntry, ...]


def read_schedule(path: Path) -> CapacityFile:
    """Jobs with deadlines.

    Raises:
        ConfigError: something is wrong; the message names the line.
    """
    return _read(path, scheduled_job)


def read_consolidation(path: Path) -> CapacityFile:
    """Jobs that must keep a throughput.

    Raises:
        ConfigError: something is wrong; the message names the line.
    """
    return _read(path, kept_job)


def _read(path: Path, job: Callable[[Entry], JobEntry]) -> CapacityFile:
    whole = load(path)
    whole.require_known(("jobs", "own", "rent"))
    machines = [own_machine(entry) for entry in whole.entries("own", "a machine")]
    machines += [rented_machine(entry) for entry in whole.entries("rent", "a machine")]
    if not machines:
        whole.fail("there are no machines", action="list some under own or rent")
    jobs = [job(entry) for entry in whole.entries("jobs", "a job")]
    if not jobs:
        whole.fail("there are no jobs", action="list some under jobs")
    _require_names([(one.entry, one.name) for one in jobs])
    _require_names([(one.entry, one.kind.name) for one in machines])
    return CapacityFile(tuple(jobs), tuple(machines))


def _require_names(named: Sequence[tuple[Entry, str]]) -> None:
    seen: set[str] = set()
    for entry, name in named:
        if name in seen:
            entry.fail(f"there are two of the name '{name}'", "name", action="rename one")
        seen.add(name)
