"""Measures what links cost in wire formats: as exact messages are measured, in less time."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deft_horovod.base.wire_format import WireFormat
from deft_horovod.plan.formats import owners
from deft_horovod.profile import FormatCost, LinkCost, LinkProfile
from deft_horovod.profile.format_text import format_text
from deft_horovod.profile.probe_plan import ALIGNMENT_BYTES, ProbePlan, probe_plan
from deft_horovod.runtime.links.codec_probe import codec_samples
from deft_horovod.runtime.links.message_stream import Allowance, MessageStream, names_of
from deft_horovod.runtime.links.probe import PLANNED_SHARE, agree, measure
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.reduce.encoded import LinkPath, encoding_of

if TYPE_CHECKING:
    from deft_horovod import _C

_LOG: Final = logging.getLogger("deft_horovod")
_US: Final = 1e6
_ITEM_BYTES: Final = 4
_FEWEST_SIZES: Final = 3  # for a line
_TIME_SHARE: Final = 0.5  # of what a link's exact messages may take, for each format


def probe_formats(
    agreement: Agreement,
    paths: Mapping[str, LinkPath],
    prefix: str,
    allowance: Allowance,
    profiles: Sequence[LinkProfile],
    formats: Sequence[WireFormat],
) -> tuple[LinkProfile, ...]:
    """The same profiles, with what each link costs in each of the formats, and what the codec takes
    of that. All ranks call it together, while no other message is on its way."""
    if not formats or allowance.size == 1:
        return tuple(profiles)
    allowance = replace(allowance, budget_s=allowance.budget_s * _TIME_SHARE)
    budget_us = allowance.budget_s * PLANNED_SHARE * _US
    samples = []
    for profile in profiles:
        any_plan = probe_plan(profile.cost, allowance.largest_bytes, budget_us)
        for one in formats:
            plan = _with_owners(any_plan, one, profile.cost, allowance.size)
            name = f"{prefix}.{profile.name}.{one}"
            names = _names(name, plan, allowance)
            link = _encoded_link(paths[profile.name], one, names, profile.cost, allowance)
            samples.append(
                measure(agreement, MessageStream(link, name, allowance), plan, allowance)
            )
    codec = [times for one in formats for times in codec_samples(one)]
    fits = agree(agreement, [*samples, *codec])
    costs = iter([fit.cost for fit in fits[: len(samples)]])
    rates = iter([fit.cost.beta_us_per_byte for fit in fits[len(samples) :]])
    codecs = {one: (next(rates), next(rates)) for one in formats}
    found = tuple(
        profile.model_copy(
            update={
                "formats": tuple(
                    FormatCost(
                        format=one,
                        cost=next(costs),
                        encode_us_per_byte=encode_us,
                        decode_us_per_byte=decode_us,
                    )
                    for one, (encode_us, decode_us) in codecs.items()
                )
            }
        )
        for profile in profiles
    )
    if agreement.deciding:
        for profile in found:
            for cost in profile.formats:
                _LOG.info("%s", format_text(profile.name, cost))
    return found


def _with_owners(
    plan: ProbePlan, wire_format: WireFormat, exact: LinkCost, ranks: int
) -> ProbePlan:
    """Of messages in two stages, where there are any and some are much larger than others: most
    bytes travel so. Smaller ones take less than the line through these says."""
    largest_bytes = plan.sizes_bytes[-1]
    halves = [largest_bytes >> n for n in range(largest_bytes.bit_length())]
    sizes = [size for size in halves if _shares(wire_format, size, exact, ranks) > 1]
    if len(sizes) < _FEWEST_SIZES:
        return plan
    chosen = {sizes[0], *sizes[1 : -1 : max(1, len(sizes) // _FEWEST_SIZES)], sizes[-1]}
    aligned = {size // ALIGNMENT_BYTES * ALIGNMENT_BYTES for size in chosen}
    return plan.model_copy(update={"sizes_bytes": tuple(sorted(aligned))})


def _shares(wire_format: WireFormat, size_bytes: int, exact: LinkCost, ranks: int) -> int:
    """How many owners a message has that takes so many bytes as float32."""
    return owners(wire_format, size_bytes // _ITEM_BYTES, ranks, exact.start_up_bytes(ranks))


def _names(stream: str, plan: ProbePlan, allowance: Allowance) -> dict[str, int]:
    """Of all messages of a stream, with their bytes."""
    return {
        name: size_bytes
        for size_bytes in plan.sizes_bytes
        for name in names_of(stream, size_bytes, allowance.in_flight)
    }


def _encoded_link(
    path: LinkPath,
    wire_format: WireFormat,
    names: Mapping[str, int],
    exact: LinkCost,
    allowance: Allowance,
) -> _C.Link:
    """Knows these messages, which travel as those of plans do."""
    ranks = allowance.size
    encodings: dict[str, _C.Encoding] = {}
    for name, size_bytes in names.items():
        shares = _shares(wire_format, size_bytes, exact, ranks)
        elements = size_bytes // _ITEM_BYTES
        encodings[name] = encoding_of(wire_format, elements, (), shares, allowance.rank)
    return path.encoded(ranks, allowance.rank, 1.0 / ranks, encodings)
