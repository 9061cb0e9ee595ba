"""Work: a job as the methods see it: when, and in which ways it can be done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Way:
    """So many ranks of a kind of machine. More ranks than a machine has take whole machines."""

    kind: int  # index among the kinds
    ranks: int
    machines: int
    duration_s: int

    def ranks_of_machine(self, ranks_of_kind: int) -> int:
        """What is taken of each of its machines."""
        return self.ranks if self.machines == 1 else ranks_of_kind


@dataclass(frozen=True)
class Work:
    """One job. `ways` are those that could meet the deadline if nothing else ran."""

    name: str
    release_s: int  # not before
    deadline_s: int
    memory_bytes: int  # of each rank
    ways: tuple[Way, ...]

    def ways_on(self, kind: int) -> list[Way]:
        """Those with few ranks first."""
        return sorted((way for way in self.ways if way.kind == kind), key=lambda way: way.ranks)
