"""Rests: what rounding has left of the gradients that travelled in a wire format.

They belong to parameters, not to messages: another plan cuts its messages elsewhere, and sends what
the one before has left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch

from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.plan.formats import rest_ranges
from deft_horovod.plan.rules import unit_elements

if TYPE_CHECKING:
    from deft_horovod import _C

Encodings = Mapping[int, "_C.Encoding"]  # by bucket


class Rests:
    """Of one optimizer on this rank."""

    def __init__(self) -> None:
        self._kept: dict[str, torch.Tensor] = {}  # by parameter: a value for each element
        self._plan: Plan | None = None  # at work
        self._encodings: Encodings = {}

    def begin(self, plan: Plan, encodings: Encodings) -> None:
        """A plan is about to run: its first messages take what is left with them."""
        self._plan, self._encodings = plan, encodings
        for name, begin, rest in self._pieces():
            kept = self._kept.get(name)
            if kept is not None:
                rest.copy_(kept[begin : begin + len(rest)])
                kept[begin : begin + len(rest)] = 0.0

    def end(self) -> None:
        """It runs no more, and nothing is in flight."""
        _add(self._kept, self._pieces())
        self._plan, self._encodings = None, {}

    def clear(self) -> None:
        """Nothing is left: other parameters are about to be loaded."""
        self._kept.clear()
        for _, _, rest in self._pieces():
            rest.zero_()

    def to_state(self) -> dict[str, torch.Tensor]:
        """A copy, for a checkpoint."""
        found = {name: rest.clone() for name, rest in self._kept.items()}
        _add(found, self._pieces())
        return {name: rest for name, rest in found.items() if rest.any()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """What :meth:`to_state` gave; the next plan begins with it."""
        self.clear()
        self._kept = {name: torch.as_tensor(rest).clone() for name, rest in state.items()}

    def _pieces(self) -> Iterator[tuple[str, int, torch.Tensor]]:
        """Of the plan at work: parameter, the first of its elements, and their rests."""
        if self._plan is None:
            return
        plan = self._plan
        members = contents(plan.slots, plan.buckets)
        for bucket, encoding in self._encodings.items():
            place, at = plan.buckets[bucket], 0
            for begin, elements in rest_ranges(plan, members, bucket):
                first = place.begin + begin
                slot = next(
                    one
                    for one in (plan.slots[index] for index in members[bucket])
                    if one.begin <= first < one.end
                )
                data = first - slot.begin - unit_elements(plan.arenas[slot.arena].wire)
                yield slot.name, data, encoding.rest[at : at + elements]
                at += elements


def _add(kept: dict[str, torch.Tensor], pieces: Iterable[tuple[str, int, torch.Tensor]]) -> None:
    for name, begin, rest in pieces:
        values = kept.get(name, torch.zeros(0))
        missing = begin + len(rest) - len(values)
        if missing > 0:
            values = torch.cat([values, torch.zeros(missing)])
        values[begin : begin + len(rest)] += rest
        kept[name] = values
