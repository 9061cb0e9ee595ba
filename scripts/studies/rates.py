"""Learning rates that follow a schedule."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class Rates:
    """Those that optimizers began with."""

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        self._groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        self._begun = [float(group["lr"]) for group in self._groups]

    def set_to(self, share: float) -> None:
        """A share of them."""
        for group, rate in zip(self._groups, self._begun, strict=True):
            group["lr"] = rate * share
