"""Merging: how the gradients of several steps become one update.

Each of them is averaged over ranks already. Their sum keeps the distance travelled per sample where
the update is proportional to the gradient. Optimizers that divide by the gradient's own size (Adam
and its kin) would see a gradient that is k times as large as those they have adapted to, so they
get the mean; and, where late updates are predicted, k times the learning rate, as they then go as
far as with k updates. Without prediction that costs accuracy instead (docs/studies/convergence.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import torch

# Their update is proportional to the gradient; all others are taken to adapt to its size.
_PROPORTIONAL: Final = (torch.optim.SGD, torch.optim.ASGD)


@dataclass(frozen=True)
class Merging:
    """What is made of k gradients."""

    mean: bool  # else their sum
    faster: bool  # their update has k times the learning rate

    def rate(self, steps: int) -> int:
        """Times the learning rate, of an update for so many steps."""
        return steps if self.faster else 1


def merging(optimizer: torch.optim.Optimizer, option: str, correction: str) -> Merging:
    """By the option, or by the optimizer."""
    if option != "auto":
        return Merging(mean=option == "mean", faster=False)
    mean = not isinstance(optimizer, _PROPORTIONAL)
    return Merging(mean=mean, faster=mean and correction != "none")


def divide(parameters: Iterable[torch.Tensor], steps: int) -> None:
    """Turns sums over steps into means, in place."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if gradients:
        torch._foreach_div_(gradients, float(steps))
