"""What a step's gradient is wrong by: that which is applied beside that of the same batches at the
true parameters, in exact numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from scripts.studies.convergence.lateness import Gradients

_LEAST: float = 1e-30  # a parameter may have no gradient


@dataclass(frozen=True)
class Error:
    """As shares of the true gradient's norm, where nothing else is said."""

    whole: float  # of all parameters
    layers: float  # mean of the shares of each tensor
    worst: float  # the largest of them
    noise: float  # of all parameters, as a share of what batches add to the gradient
    along: float  # the part that has the gradient's direction, with its sign
    rest: float  # what is kept for the next messages


def error_of(
    applied: Gradients, true: Sequence[Gradients], rests: Mapping[torch.Tensor, torch.Tensor]
) -> Error:
    """`true`: of each worker; `rests`: as far as there are any."""
    tensors = list(applied)
    means = {p: torch.stack([of_worker[p] for of_worker in true]).mean(0) for p in tensors}
    wrong = {p: applied[p] - means[p] for p in tensors}
    squares = _squares(wrong[p] for p in tensors)
    sizes = _squares(means[p] for p in tensors)
    shares = (squares / sizes.clamp_min(_LEAST)).sqrt()
    spread = torch.stack([_squares(g[p] - means[p] for p in tensors).sum() for g in true])
    noise = spread.sum() / (len(true) * (len(true) - 1))
    along = torch.stack([(wrong[p] * means[p]).sum() for p in tensors]).sum()
    rest = _squares(rests.values()).sum() if rests else torch.zeros(())
    size = sizes.sum().clamp_min(_LEAST)
    return Error(
        whole=_number((squares.sum() / size).sqrt()),
        layers=_number(shares.mean()),
        worst=_number(shares.max()),
        noise=_number((squares.sum() / noise.clamp_min(_LEAST)).sqrt()),
        along=_number(along / size),
        rest=_number((rest.to(size.device) / size).sqrt()),
    )


def _squares(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.stack([t.double().square().sum() for t in tensors])


def _number(value: torch.Tensor) -> float:
    """Four digits say enough."""
    return float(f"{value.item():.4g}")
