"""ACCO's trial step (arXiv 2406.02613), for comparison: half of each batch is computed early.

After its published code (edouardoyallon/acco): the gradient of a batch's first half is averaged
while its second half is computed; a step of the optimizer on that half alone, taken back at once,
predicts the next parameters, and the next batch's first half is computed there. Everything is
applied in time; the price is a second message for each gradient and step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import torch

from deft_horovod.runtime.correct.lookahead import Lookahead
from deft_horovod.runtime.reduce.updates import options_of
from scripts.studies.convergence.lateness import Gradients, owned

NAME: Final = "acco"  # as the correction of an arm


class TrialStep:
    """Where the first halves of the next batches are computed."""

    def __init__(
        self, late: Sequence[torch.Tensor], optimizers: Sequence[torch.optim.Optimizer]
    ) -> None:
        self._late = tuple(late)
        self._optimizers = tuple(optimizers)
        self._trial: dict[torch.Tensor, torch.Tensor] = {}

    def foresee(self, halves: Sequence[Gradients]) -> None:
        """Of the first halves of all workers, before their whole batches are applied."""
        average = {p: torch.stack([half[p] for half in halves]).mean(0) for p in self._late}
        lookaheads = [Lookahead(optimizer) for optimizer in self._optimizers]
        for optimizer, lookahead in zip(self._optimizers, lookaheads, strict=True):
            mine = {p: average[p] for p in owned(optimizer, average)}
            lookahead.cast([(mine, options_of(optimizer))])
        self._trial = {p: p.detach().clone() for p in self._late}
        for lookahead in lookaheads:
            lookahead.lift()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Parameters as they were foreseen; the true ones where nothing was."""
        true = {p: p.detach().clone() for p in self._trial}
        for p, value in self._trial.items():
            p.data.copy_(value)
        try:
            yield
        finally:
            for p, value in true.items():
                p.data.copy_(value)
