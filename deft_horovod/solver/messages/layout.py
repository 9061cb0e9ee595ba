"""Layout: which arena each parameter's gradient lives in, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deft_horovod.base.parameter import WIRE_ITEM_BYTES, Parameter
from deft_horovod.plan import Arena, Slot
from deft_horovod.plan.rules import unit_elements


@dataclass(frozen=True)
class Span:
    """A slot together with the padding behind it: the spans of an arena tile it."""

    parameter: int
    begin: int
    end: int


@dataclass(frozen=True)
class Layout:
    arenas: tuple[Arena, ...]
    slots: tuple[Slot, ...]  # in the order of the parameters
    spans: tuple[tuple[Span, ...], ...]  # of each arena, in the order of their positions

    def item_bytes(self, arena: int) -> int:
        return WIRE_ITEM_BYTES[self.arenas[arena].wire]


def slot_bytes(parameter: Parameter) -> int:
    """What a gradient takes on the wire, with its header and the padding behind it."""
    unit = unit_elements(parameter.wire)
    return -(-(unit + parameter.elements) // unit) * unit * WIRE_ITEM_BYTES[parameter.wire]


def lay_out(parameters: Sequence[Parameter], order: Sequence[int]) -> Layout:
    """Puts the parameters into their arenas in the given order (a permutation of their indices).

    Arenas are numbered as their first parameter comes up, so that number does not depend on the
    order and survives a new plan.
    """
    numbers: dict[tuple[str, str, str], int] = {}
    for parameter in parameters:
        numbers.setdefault((parameter.dtype, parameter.wire, parameter.device), len(numbers))
    spans: list[list[Span]] = [[] for _ in numbers]
    slots: dict[int, Slot] = {}
    for index in order:
        parameter = parameters[index]
        arena = numbers[parameter.dtype, parameter.wire, parameter.device]
        unit = unit_elements(parameter.wire)
        begin = spans[arena][-1].end if spans[arena] else 0
        end = begin + unit + parameter.elements
        slots[index] = Slot(
            name=parameter.name, arena=arena, begin=begin, end=end, exact=parameter.exact
        )
        spans[arena].append(Span(index, begin, -(-end // unit) * unit))
    return Layout(
        arenas=tuple(
            Arena(dtype=dtype, wire=wire, device=device, elements=members[-1].end)
            for (dtype, wire, device), members in zip(numbers, spans, strict=True)
        ),
        slots=tuple(slots[index] for index in range(len(parameters))),
        spans=tuple(tuple(members) for members in spans),
    )


def order_with_groups(
    order: Sequence[int], groups: Sequence[Sequence[int]] = ()
) -> tuple[int, ...]:
    """The same order with the members of each group side by side.

    A group stands where its last member stood, since only then can it travel.
    """
    position = {index: place for place, index in enumerate(order)}
    anchor = dict(position)
    for group in groups:
        last = max((position[index] for index in group), default=0)
        anchor.update(dict.fromkeys(group, last))
    return tuple(sorted(order, key=lambda index: (anchor[index], position[index])))
