"""Merging: how the gradients of several steps become one update.

Each of them is averaged over ranks already. Their sum keeps the distance travelled per sample where
the update is proportional to the gradient. Optimizers that divide by the gradient's own size (Adam
and its kin) would see a gradient that is k times as large as those they have adapted to, so they
get the mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import torch

# Their update is proportional to the gradient; all others are taken to adapt to its size.
_PROPORTIONAL: Final = (torch.optim.SGD, torch.optim.ASGD)


def takes_mean(optimizer: torch.optim.Optimizer, option: str) -> bool:
    """Whether merged gradients are averaged over their steps, by the option or by the optimizer."""
    if option == "auto":
        return not isinstance(optimizer, _PROPORTIONAL)
    return option == "mean"


def divide(parameters: Iterable[torch.Tensor], steps: int) -> None:
    """Turns sums over steps into means, in place."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if gradients:
        torch._foreach_div_(gradients, float(steps))
