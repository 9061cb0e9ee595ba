"""Guesses at an averaged gradient that is still in flight, from what a rank has already.

They take what this rank has contributed to it (`own`); some also the latest average that has
arrived, and what this rank had contributed to that one. An average is one part in n this rank's own
gradient, which is known; the rest has to be guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import torch


@dataclass(frozen=True)
class Arrived:
    """The latest average, and this rank's part in it."""

    average: torch.Tensor
    own: torch.Tensor


@dataclass(frozen=True)
class Guess:
    """One way to guess."""

    summary: str
    guess: Callable[[torch.Tensor, Arrived | None, int], torch.Tensor | None]  # own, arrived, ranks
    looks_back: bool = False  # without an earlier average it knows nothing


def _previous(own: torch.Tensor, arrived: Arrived | None, ranks: int) -> torch.Tensor | None:
    del own, ranks
    return None if arrived is None else arrived.average


def _own_and_previous(
    own: torch.Tensor, arrived: Arrived | None, ranks: int
) -> torch.Tensor | None:
    return None if arrived is None else arrived.average + (own - arrived.own) / ranks


# `local`, `previous` and `own_and_previous` are SAPipe's `local`, `prev_sync` and `local_prev_sync`
# (Chen et al., NeurIPS 2022, by its published code); the two others are ours.
GUESSES: Final[Mapping[str, Guess]] = MappingProxyType(
    {
        "momentum": Guess(
            "no gradient at all: the optimizer moves on by its momentum alone",
            lambda own, arrived, ranks: torch.zeros_like(own),  # noqa: ARG005
        ),
        "previous": Guess("all ranks do what they did last time", _previous, looks_back=True),
        "own_share": Guess(
            "this rank's part, and nothing of the others",
            lambda own, arrived, ranks: own / ranks,  # noqa: ARG005
        ),
        "local": Guess(
            "the others do what this rank does",
            lambda own, arrived, ranks: own,  # noqa: ARG005
        ),
        "own_and_previous": Guess(
            "this rank's part, and the others do what they did last time",
            _own_and_previous,
            looks_back=True,
        ),
    }
)
