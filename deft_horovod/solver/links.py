"""Links: which of them a plan may use together, and what they cost and carry then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deft_horovod.base.wire_format import WireFormat
from deft_horovod.profile import LinkCost, Profile

_LEAST_US_PER_BYTE: Final = 1e-12  # one divides by it


def costs_of(profile: Profile, links: Sequence[int]) -> tuple[LinkCost, ...]:
    """Of these links of the profile, used side by side."""
    return tuple(
        profile.links[link].cost
        if len(links) == 1
        else profile.links[link].busy_cost or profile.links[link].cost
        for link in links
    )


def costs_in(
    profile: Profile, links: Sequence[int], wire_format: WireFormat
) -> tuple[LinkCost, ...]:
    """Of messages in this format on each of these links; nothing where one was not measured."""
    costs = [profile.links[link].cost_in(wire_format) for link in links]
    return tuple(cost for cost in costs if cost is not None) if None not in costs else ()


def bytes_per_us(profile: Profile, links: Sequence[int]) -> float:
    """What these links carry together, used side by side."""
    costs = costs_of(profile, links)
    return sum(1.0 / max(cost.beta_us_per_byte, _LEAST_US_PER_BYTE) for cost in costs)


def link_sets(profile: Profile, *, only_if_faster: bool) -> list[tuple[int, ...]]:
    """The first link, and all of them; `only_if_faster`: if together they carry more than it."""
    first, together = (0,), tuple(range(len(profile.links)))
    if together == first:
        return [first]
    if only_if_faster and bytes_per_us(profile, together) <= bytes_per_us(profile, first):
        return [first]
    return [first, together]
