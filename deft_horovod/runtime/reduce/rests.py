"""Rests: what rounding has left of the gradients that travelled in a wire format.

They belong to parameters, not to messages: another plan cuts its messages elsewhere, and sends what
the one before has left. There are those of the gradients that this rank has sent, and those of the
sums that it has rounded for all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.plan.formats import rest_ranges
from deft_horovod.plan.rules import unit_elements

if TYPE_CHECKING:
    from deft_horovod import _C

Encodings = Mapping[int, "_C.Encoding"]  # by bucket
_Kept = dict[str, torch.Tensor]  # by parameter: a value for each element
_Piece = tuple[str, int, torch.Tensor]  # a parameter, the first of its elements, their rests


@dataclass(frozen=True)
class _AtWork:
    """The plan that runs."""

    plan: Plan
    encodings: Encodings

    def values(self) -> Iterator[_Piece]:
        """What is left of gradients."""
        for name, begin, at, elements, encoding in self._ranges():
            yield name, begin, encoding.rest[at : at + elements]

    def sums(self) -> Iterator[_Piece]:
        """What is left of sums."""
        for name, begin, at, elements, encoding in self._ranges():
            owned = len(encoding.sum_rest)
            first = max(at - encoding.sum_rest_begin, 0)
            last = min(at + elements - encoding.sum_rest_begin, owned)
            if first < last:
                skipped = first + encoding.sum_rest_begin - at
                yield name, begin + skipped, encoding.sum_rest[first:last]

    def _ranges(self) -> Iterator[tuple[str, int, int, int, _C.Encoding]]:
        """Parameter, first element, where its rests lie, how many, and of which encoding."""
        plan = self.plan
        members = contents(plan.slots, plan.buckets)
        for bucket, encoding in self.encodings.items():
            place, at = plan.buckets[bucket], 0
            for begin, elements in rest_ranges(plan, members, bucket):
                first = place.begin + begin
                inside = (plan.slots[index] for index in members[bucket])
                slot = next(one for one in inside if one.begin <= first < one.end)
                header = unit_elements(plan.arenas[slot.arena].wire)
                yield slot.name, first - slot.begin - header, at, elements, encoding
                at += elements


class Rests:
    """Of one optimizer on this rank."""

    def __init__(self) -> None:
        self.dropped = 0  # parameters whose rests were thrown away, each time that they were
        self._values: _Kept = {}
        self._sums: _Kept = {}
        self._at_work: _AtWork | None = None

    @property
    def kept_bytes(self) -> int:
        """Memory of what waits for a later plan."""
        return sum(one.nbytes for kept in self._all() for one in kept.values())

    def begin(self, plan: Plan, encodings: Encodings, factor: float) -> None:
        """A plan is about to run: its first messages take what is left with them. What this rank
        has left of sums that others make from now on goes with its gradients, of which sums are
        `factor` times the total."""
        self._at_work = _AtWork(plan, encodings)
        _move(self._sums, self._at_work.sums())
        _add(self._values, ((name, 0, sums / factor) for name, sums in self._sums.items()))
        self._sums.clear()
        _move(self._values, self._at_work.values())
        self._values = _without_zeros(self._values)

    def end(self) -> None:
        """It runs no more, and nothing is in flight."""
        if self._at_work is not None:
            _add(self._values, self._at_work.values())
            _add(self._sums, self._at_work.sums())
        self._at_work = None

    def clear(self) -> None:
        """Nothing is left: other parameters are about to be loaded, or other ranks are there."""
        left = {name for kept in self._all() for name, one in kept.items() if one.any()}
        self._values.clear()
        self._sums.clear()
        if self._at_work is not None:
            for pieces in (self._at_work.values(), self._at_work.sums()):
                for name, _, rest in pieces:
                    if rest.any():
                        left.add(name)
                        rest.zero_()
        self.dropped += len(left)

    def to_state(self) -> dict[str, dict[str, torch.Tensor]]:
        """A copy, for a checkpoint."""
        values, sums = ({name: one.clone() for name, one in kept.items()} for kept in self._all())
        if self._at_work is not None:
            _add(values, self._at_work.values())
            _add(sums, self._at_work.sums())
        return {"values": _without_zeros(values), "sums": _without_zeros(sums)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """What :meth:`to_state` gave; the next plan begins with it."""
        self.clear()
        for kept, key in zip(self._all(), ("values", "sums"), strict=True):
            kept.update((name, one.clone()) for name, one in state.get(key, {}).items())

    def _all(self) -> tuple[_Kept, _Kept]:
        return self._values, self._sums


def _move(kept: _Kept, pieces: Iterator[_Piece]) -> None:
    """From what is kept to where messages take it from."""
    for name, begin, rest in pieces:
        values = kept.get(name)
        if values is not None:
            mine = values[begin : begin + len(rest)]
            rest[: len(mine)] = mine
            mine.zero_()


def _add(kept: _Kept, pieces: Iterator[_Piece]) -> None:
    for name, begin, rest in pieces:
        values = kept.get(name, torch.zeros(0))
        missing = begin + len(rest) - len(values)
        if missing > 0:
            values = torch.cat([values, torch.zeros(missing)])
        values[begin : begin + len(rest)] += rest
        kept[name] = values


def _without_zeros(kept: _Kept) -> _Kept:
    return {name: values for name, values in kept.items() if values.any()}
