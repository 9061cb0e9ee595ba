"""What a run of the study of wire formats trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from scripts.studies.convergence.tasks import Batch
from scripts.studies.convergence.training import rate_share

Draw = Callable[[int, torch.Generator], Batch]
Schedule = Callable[[float], float]
Criterion = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def classes(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The cross-entropy of classes, as many as the last dimension has scores."""
    return functional.cross_entropy(scores.flatten(0, -2), targets.flatten())


@dataclass(frozen=True)
class Task:
    """`draw` gives training batches without end, `held_out` is what validates."""

    name: str
    model: Callable[[], nn.Module]
    draw: Draw
    held_out: Callable[[], Batch]
    steps: int
    batch: int  # of each worker and pass
    passes: int = 1  # whose gradients add up before they travel
    schedule: Schedule = rate_share  # the share of the learning rate, by the share of steps done
    clip: float = 0.0  # the longest gradient of all parameters together; 0: any
    begins_from: str = ""  # the task whose trained model this one goes on with
    criterion: Criterion = classes

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        inputs, targets = batch
        return self.criterion(model(inputs), targets)

    def stream(self, generator: torch.Generator) -> Iterator[Batch]:
        while True:
            yield self.draw(self.batch, generator)
