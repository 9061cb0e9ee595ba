"""Rests: what rounding has left of the gradients that travelled in a wire format.

They belong to parameters, not to messages: another plan cuts its messages elsewhere, and sends what
the one before has left, also where it sends values as they are. There are those of the gradients
that this rank has sent, and those of the sums that it has rounded for all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.plan.formats import rest_ranges
from deft_horovod.plan.rules import unit_elements
from deft_horovod.runtime.reduce.encoded import whole_of

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

    def whole_next(self) -> set[str]:
        """Parameters of which a part travels whole in the next message."""
        members = contents(self.plan.slots, self.plan.buckets)
        asked = (bucket for bucket, encoding in self.encodings.items() if encoding.whole_next)
        return {self.plan.slots[slot].name for bucket in asked for slot in members[bucket]}

    def ask_whole(self, parameters: AbstractSet[str]) -> None:
        """The next encoded messages travel whole if they hold a part of one of these."""
        members = contents(self.plan.slots, self.plan.buckets)
        for bucket, encoding in self.encodings.items():
            if not encoding.always_whole:
                inside = (self.plan.slots[slot].name for slot in members[bucket])
                encoding.whole_next = not parameters.isdisjoint(inside)


class Rests:
    """Of one optimizer on this rank."""

    def __init__(self) -> None:
        self.dropped = 0  # parameters whose rests were thrown away, each time that they were
        self._values: _Kept = {}
        self._sums: _Kept = {}
        self._whole_next: set[str] = set()  # parameters whose next messages travel whole
        self._at_work: _AtWork | None = None

    @property
    def kept_bytes(self) -> int:
        """Memory of what waits for a later plan."""
        return sum(one.nbytes for kept in self._all() for one in kept.values())

    def begin(self, plan: Plan, encodings: Encodings, factor: float) -> Encodings:
        """A plan is about to run: its first messages take what is left with them. What this rank
        has left of sums that others make from now on goes with its gradients, of which sums are
        `factor` times the total.

        Returns the encodings of the plan and, where something is left of what it sends as it is,
        those that take that along. Each rank does so by itself: these are ordinary messages.
        """
        _move(self._sums, _AtWork(plan, encodings).sums())
        _add(self._values, ((name, 0, sums / factor) for name, sums in self._sums.items()))
        self._sums.clear()
        self._values = _without_zeros(self._values)
        every = {**encodings, **whole_of(plan, self._values.keys())}
        self._at_work = _AtWork(plan, every)
        self._at_work.ask_whole(self._whole_next)
        self._whole_next.clear()
        _move(self._values, self._at_work.values())
        self._values = _without_zeros(self._values)
        return every

    def end(self) -> None:
        """It runs no more, and nothing is in flight."""
        if self._at_work is not None:
            _add(self._values, self._at_work.values())
            _add(self._sums, self._at_work.sums())
            self._whole_next = self._at_work.whole_next()
        self._at_work = None

    def send_whole(self) -> None:
        """The next message of each bucket travels in full precision, with what is left. All ranks
        say so between the same two steps, with nothing in flight."""
        if self._at_work is not None:
            self._at_work.ask_whole({slot.name for slot in self._at_work.plan.slots})

    def withdraw(self) -> None:
        """No message travels whole because that was asked for: not all ranks have sent as many."""
        self._whole_next.clear()
        if self._at_work is not None:
            self._at_work.ask_whole(set())

    def add_to(
        self, gradient: torch.Tensor, name: str, parameter: torch.Tensor, factor: float
    ) -> None:
        """What is left of a parameter that no plan carries goes with its gradient, unless one of
        the values is not finite. `factor` as in :meth:`begin`."""
        if name not in self._values and name not in self._sums:
            return
        left = _zeros(parameter.numel())
        for kept, times in ((self._values, 1.0), (self._sums, 1.0 / factor)):
            if name in kept:
                left[: len(kept[name])] += kept[name] * times
        # They lie as the gradient does in an arena.
        left = left.as_strided(parameter.size(), torch.empty_like(parameter.detach()).stride())
        left = left.to(gradient.device)
        if bool((gradient + left).isfinite().all()):
            gradient += left
            for kept in self._all():
                kept.pop(name, None)

    def clear(self) -> None:
        """Nothing is left: other parameters are about to be loaded, or other ranks are there."""
        self.withdraw()
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

    def to_state(self, *, in_step: bool = False) -> dict[str, Any]:
        """A copy, for a checkpoint. `in_step`: the messages of the next step are those of a step
        that counts as thrown away."""
        values, sums = ({name: one.clone() for name, one in kept.items()} for kept in self._all())
        whole_next = self._whole_next
        if self._at_work is not None:
            _add(values, self._at_work.values())
            _add(sums, self._at_work.sums())
            whole_next = self._at_work.whole_next()
        return {
            "values": _without_zeros(values),
            "sums": _without_zeros(sums),
            "whole_next": [] if in_step else sorted(whole_next),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """What :meth:`to_state` gave; the next plan begins with it."""
        self.clear()
        for kept, key in zip(self._all(), ("values", "sums"), strict=True):
            kept.update((name, one.clone()) for name, one in state.get(key, {}).items())
        self._whole_next.update(state.get("whole_next", ()))

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
        values = kept.get(name, _zeros(0))
        missing = begin + len(rest) - len(values)
        if missing > 0:
            values = torch.cat([values, _zeros(missing)])
        values[begin : begin + len(rest)] += rest
        kept[name] = values


def _zeros(elements: int) -> torch.Tensor:
    # Named: the user may have set other defaults.
    return torch.zeros(elements, dtype=torch.float32, device="cpu")


def _without_zeros(kept: _Kept) -> _Kept:
    return {name: values for name, values in kept.items() if values.any()}
