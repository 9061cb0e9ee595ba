"""What the study of wire formats trains: real text and real photographs that are at hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch import nn
from torch.nn import functional

from scripts.studies.convergence.tasks import Batch, Residual, Transformer, characters

_CROP: Final = 12  # pixels, in both directions
_BANDS: Final = 4  # of rows
_VALIDATION_CROPS: Final = 2048
_COLOURS: Final = 3
_PHOTOGRAPHS: Final = 2

Draw = Callable[[int, torch.Generator], Batch]


@dataclass(frozen=True)
class Task:
    """`draw` gives training batches without end, `held_out` is what validates."""

    name: str
    model: Callable[[], nn.Module]
    draw: Draw
    held_out: Callable[[], Batch]
    steps: int
    batch: int  # of each worker

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        inputs, targets = batch
        return functional.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())

    def stream(self, generator: torch.Generator) -> Iterator[Batch]:
        while True:
            yield self.draw(self.batch, generator)


def _text(size: int, generator: torch.Generator) -> Batch:
    inputs, targets = characters()[0]
    chosen = torch.randint(len(inputs), (size,), generator=generator)
    return inputs[chosen], targets[chosen]


@functools.cache
def _photographs() -> torch.Tensor:
    """The two that scikit-learn ships, [photograph, colour, row, column]."""
    from sklearn import datasets

    pixels = torch.stack([torch.tensor(image) for image in datasets.load_sample_images().images])
    return pixels.permute(0, 3, 1, 2).float() / 128.0 - 1.0


def _crops(size: int, generator: torch.Generator) -> Batch:
    """To be found out: of which photograph, and of which band of its rows."""
    photographs = _photographs()
    _, _, height, width = photographs.shape

    def drawn(below: int) -> torch.Tensor:
        return torch.randint(below, (size,), generator=generator)

    photograph, band = drawn(_PHOTOGRAPHS), drawn(_BANDS)
    row = band * (height // _BANDS) + drawn(height // _BANDS - _CROP + 1)
    column = drawn(width - _CROP + 1)
    inside = torch.arange(_CROP)
    rows, columns = row[:, None] + inside, column[:, None] + inside
    crops = photographs[photograph[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return crops.permute(0, 3, 1, 2).contiguous(), photograph * _BANDS + band


@functools.cache
def _validation_crops() -> Batch:
    return _crops(_VALIDATION_CROPS, torch.Generator().manual_seed(0))


def residual_net() -> nn.Module:
    """ResNet-like; groups of channels are normalised, as workers share no statistics of batches."""
    return nn.Sequential(
        nn.Conv2d(_COLOURS, 24, 3, padding=1),
        Residual(24),
        nn.Conv2d(24, 48, 3, stride=2, padding=1),
        Residual(48),
        nn.Conv2d(48, 64, 3, stride=2, padding=1),
        Residual(64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, _PHOTOGRAPHS * _BANDS),
    )


TASKS: Final = {
    task.name: task
    for task in (
        Task("text", Transformer, _text, lambda: characters()[1], steps=500, batch=4),
        Task("photos", residual_net, _crops, _validation_crops, steps=300, batch=8),
    )
}
