"""What wire formats cost, against the noise that batches make anyway. Pure.

Each rank rounds for itself, so the errors of ranks average out as the noise of their batches does.
Error feedback sends in the next step what rounding has left, so this says how restless training
becomes, not where it ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Final, NamedTuple

from deft_horovod.base.wire_format import WireFormat
from deft_horovod.preserver.cost import Gradients

# Of the average's square. Gradients may be all but equal on all ranks; then an error of a percent,
# made good a step later, is still none to speak of.
_LEAST_NOISE: Final = 0.02
# How much noise rounding may add, by the word for accuracy. Set by hand: a tenth makes the whole
# noise 0.5 % larger, a half 12 %.
TOLERATED: Final[Mapping[str, float]] = MappingProxyType({"equal": 0.1, "fast": 0.5})


class RoundingError(NamedTuple):
    """What rounding has left of a bucket's latest message, relative to its gradients."""

    format: WireFormat
    gradients: tuple[str, ...]  # that may be rounded
    error: float


def by_format(errors: Sequence[RoundingError]) -> dict[WireFormat, float]:
    """Of each format that has travelled, the error of its typical bucket."""
    found: dict[WireFormat, list[float]] = {}
    for one in errors:
        found.setdefault(one.format, []).append(one.error)
    return {name: median(of_buckets) for name, of_buckets in found.items()}


def added_noise(error: float, gradients: Gradients) -> float:
    """What an error of rounding, relative to a gradient, adds to the average: as a share of the
    noise of batches, both as roots of squares."""
    rounding = error**2 * gradients.own_square / gradients.ranks
    batches = max(gradients.noise, _LEAST_NOISE * gradients.average_square)
    return math.sqrt(rounding / batches) if batches > 0.0 else 0.0
