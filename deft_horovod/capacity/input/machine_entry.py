"""MachineEntry: a kind of machine as a user writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deft_horovod.base.rate import parse_rate
from deft_horovod.capacity.input.entry import Entry
from deft_horovod.capacity.input.values import count, duration_s, positive, price, size_bytes
from deft_horovod.capacity.problem.machine_kind import MachineKind
from deft_horovod.capacity.times.pace import Site

_COMMON: Final = ("name", "ranks", "memory", "speed", "link", "inner_link")
OWN_FIELDS: Final = (*_COMMON, "count")
RENTED_FIELDS: Final = (*_COMMON, "limit", "price_per_hour", "start_up", "billed")
_MOST_MACHINES: Final = 1_000


@dataclass(frozen=True)
class MachineEntry:
    """The kind, and what its links carry. None: what was measured for the profile."""

    entry: Entry
    kind: MachineKind
    rate_bits_per_s: float | None  # between machines
    inner_rate_bits_per_s: float | None  # between ranks of one machine

    def site(self, ranks: int, *, together: bool) -> Site:
        rate = self.inner_rate_bits_per_s if together else self.rate_bits_per_s
        return Site(ranks, self.kind.speed, rate)


def own_machine(entry: Entry) -> MachineEntry:
    entry.what = f"machine {entry.text('name')}"
    entry.require_known(OWN_FIELDS)
    return _machine(entry, entry.read("count", _machines, 1), rented=False)


def rented_machine(entry: Entry) -> MachineEntry:
    entry.what = f"machine {entry.text('name')}"
    entry.require_known(RENTED_FIELDS)
    return _machine(entry, entry.read("limit", _machines), rented=True)


def _machine(entry: Entry, machines: int, *, rented: bool) -> MachineEntry:
    kind = MachineKind(
        name=entry.text("name"),
        count=machines,
        ranks=entry.read("ranks", count),
        memory_bytes=entry.read("memory", size_bytes),
        price_per_hour=entry.read("price_per_hour", price) if rented else None,
        start_up_s=entry.read("start_up", duration_s, 0) if rented else 0,
        billed_s=max(1, entry.read("billed", duration_s, 1)) if rented else 1,
        speed=entry.read("speed", positive, 1.0),
    )
    rate = entry.read("link", parse_rate) if entry.has("link") else None
    inner = entry.read("inner_link", parse_rate) if entry.has("inner_link") else rate
    return MachineEntry(entry, kind, rate, inner)


def _machines(text: str) -> int:
    found = count(text)
    if found > _MOST_MACHINES:
        raise ValueError(f"more than {_MOST_MACHINES:,} machines of a kind")
    return found
