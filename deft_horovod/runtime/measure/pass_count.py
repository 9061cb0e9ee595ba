"""Counts the backward passes of a step: those that add to one gradient, and all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge

from deft_horovod.runtime.extension import native


class PassCount:
    """Hooks on the gradients of some parameters, to be taken off with :meth:`detach`."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self.total = 0  # backward passes, also those that give no gradient of these
        self._tensors = list(tensors)
        self._counts = [0] * len(tensors)
        # A parameter does not keep its node alive.
        self._nodes = [get_gradient_edge(tensor).node for tensor in tensors]
        self._attached: list[Callable[[], Any]] = [
            node.register_prehook(partial(self._arrive, i)).remove
            for i, node in enumerate(self._nodes)
        ]
        self._attached.append(native.BackwardWatch(self._begin).detach)

    @property
    def of_gradient(self) -> int:
        """Passes that added to the gradient that had most; 0: no gradient came."""
        return max(self._counts, default=0)

    def detach(self) -> None:
        """Removes all hooks."""
        for detach in self._attached:
            detach()
        self._attached.clear()
        self._nodes.clear()

    def _begin(self) -> None:
        self.total += 1

    def _arrive(self, index: int, _: Any) -> None:
        # What came before a gradient was set to None is thrown away, as by a loss scaler.
        fresh = self._tensors[index].grad is None
        self._counts[index] = 1 if fresh else self._counts[index] + 1
