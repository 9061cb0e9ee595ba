"""How many ranks a job may have on machines of a kind, and how long that takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from deft_horovod.capacity.input.job_entry import JobEntry
from deft_horovod.capacity.input.machine_entry import MachineEntry
from deft_horovod.capacity.problem.machine_kind import ranks_within
from deft_horovod.capacity.times.pace import Pace, Paces

_EVERY: Final = 4  # up to so many ranks each number is looked at, then powers of two


@dataclass(frozen=True)
class Seat:
    """So many ranks on machines of a kind, and how long a step takes there."""

    machine: MachineEntry
    ranks: int
    machines: int
    pace: Pace

    def step_us(self, *, stock: bool) -> float:
        return self.pace.stock_us if stock else self.pace.ours_us


class Seats:
    """Of jobs that share a profile and an accuracy, each step time is simulated once."""

    def __init__(self) -> None:
        self._paces: dict[tuple[str, str], Paces] = {}

    def of(self, job: JobEntry, machine: MachineEntry) -> Iterator[Seat]:
        """On one machine as far as ranks and memory allow, then on whole machines."""
        for ranks, machines in _numbers(job, machine):
            site = machine.site(ranks, together=machines == 1)
            yield Seat(machine, ranks, machines, self.paces(job).at(site))

    def spread(self, job: JobEntry, machine: MachineEntry) -> Iterator[Seat]:
        """Divided over machines in any way, so that messages take the links between them."""
        least, most = max(2, job.min_ranks), room(job, machine) * machine.kind.count
        for ranks in looked_at(least, min(job.max_ranks, most)):
            machines = -(-ranks // max(1, room(job, machine)))
            site = machine.site(ranks, together=False)
            yield Seat(machine, ranks, max(2, machines), self.paces(job).at(site))

    def together(self, job: JobEntry, machine: MachineEntry) -> Iterator[Seat]:
        return (seat for seat in self.of(job, machine) if seat.machines == 1)

    def paces(self, job: JobEntry) -> Paces:
        key = (job.profile.hash(), job.accuracy)
        if key not in self._paces:
            self._paces[key] = Paces(job.profile, job.accuracy)
        return self._paces[key]


def room(job: JobEntry, machine: MachineEntry) -> int:
    """Ranks of a job for which one machine is enough."""
    kind = machine.kind
    return ranks_within(kind.ranks, kind.memory_bytes, job.memory_bytes)


def _numbers(job: JobEntry, machine: MachineEntry) -> list[tuple[int, int]]:
    kind = machine.kind
    inside = room(job, machine)
    found = [(ranks, 1) for ranks in looked_at(job.min_ranks, min(job.max_ranks, inside))]
    if inside == kind.ranks:
        most = min(kind.count, job.max_ranks // kind.ranks)
        found += [
            (machines * kind.ranks, machines)
            for machines in looked_at(2, most)
            if machines * kind.ranks >= job.min_ranks
        ]
    return found


def looked_at(least: int, most: int) -> list[int]:
    """The bounds, small numbers, and powers of two."""
    powers = (1 << power for power in range(most.bit_length()))
    wanted = {least, most, *range(1, _EVERY + 1), *powers}
    return sorted(number for number in wanted if least <= number <= most)
