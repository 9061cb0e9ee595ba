"""Demand: everything that the methods are told, and the machines of it one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from deft_horovod.capacity.problem.machine_kind import MachineKind
from deft_horovod.capacity.problem.work import Way, Work


class Unit(NamedTuple):
    """One machine: the kind, and which of them."""

    kind: int
    number: int


@dataclass(frozen=True)
class Demand:
    """Times are whole seconds from the beginning of the plan."""

    works: tuple[Work, ...]
    kinds: tuple[MachineKind, ...]

    @cached_property
    def horizon_s(self) -> int:
        """Nothing runs after the last deadline."""
        return max((work.deadline_s for work in self.works), default=0)

    @cached_property
    def own_ranks(self) -> int:
        return sum(kind.count * kind.ranks for kind in self.kinds if kind.is_own)

    def units(self, kind: int) -> list[Unit]:
        return [Unit(kind, number) for number in range(self.kinds[kind].count)]

    def starts_from_s(self, work: Work, kind: int) -> int:
        """When it can begin there at the earliest: rented machines have to start up."""
        return max(work.release_s, self.kinds[kind].start_up_s)

    def possible(self, work: Work) -> Iterator[Way]:
        """The ways that meet the deadline if nothing else runs."""
        for way in work.ways:
            in_time = self.starts_from_s(work, way.kind) + way.duration_s <= work.deadline_s
            if in_time and way.machines <= self.kinds[way.kind].count:
                yield way

    def memory_is_scarce(self, kind: int) -> bool:
        """Whether ranks that fit a machine by number may not fit its memory."""
        most = max(
            (
                work.memory_bytes
                for work in self.works
                if any(way.kind == kind for way in work.ways)
            ),
            default=0,
        )
        return most * self.kinds[kind].ranks > self.kinds[kind].memory_bytes
