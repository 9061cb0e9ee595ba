"""What the study of wire formats trains: real text and real photographs that are at hand. The
larger ones confirm what the small ones have shown."""

from __future__ import annotations

import functools
import sysconfig
from pathlib import Path
from typing import Final

import torch
from torch import nn
from torch.nn import functional

from scripts.studies.convergence.tasks import Batch, Residual, Transformer, characters, windows
from scripts.studies.formats.photographs import BANDS, SHADES, Crops, Grey, Noisy, ten, two
from scripts.studies.formats.schedules import constant, dropping, half_cosine, warmup_stable_decay
from scripts.studies.formats.task import Task

_COLOURS: Final = 3
_VALIDATED: Final = 128  # windows of text that validate a larger model
_SMALL: Final = Crops(two, 12)
_LARGE: Final = Crops(ten, 16)
_NOISY: Final = Noisy(_LARGE, 0.25)
_GREY: Final = Grey(_LARGE)


def _drawn(of: Batch, size: int, generator: torch.Generator) -> Batch:
    inputs, targets = of
    chosen = torch.randint(len(inputs), (size,), generator=generator)
    return inputs[chosen], targets[chosen]


def _text(size: int, generator: torch.Generator) -> Batch:
    return _drawn(characters()[0], size, generator)


def _some_text() -> Batch:
    inputs, targets = characters()[1]
    return inputs[:_VALIDATED], targets[:_VALIDATED]


@functools.cache
def _help() -> tuple[Batch, Batch]:
    """English: what Python's help() says about the language."""
    topics = Path(sysconfig.get_path("stdlib")) / "pydoc_data" / "topics.py"
    return windows(topics.read_bytes(), _VALIDATED)


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
        nn.Linear(64, 2 * BANDS),
    )


def large_residual_net() -> nn.Module:
    """Of 0.9 million parameters, two blocks at each size."""
    return nn.Sequential(
        *(nn.Conv2d(_COLOURS, 32, 3, padding=1), Residual(32), Residual(32)),
        *(nn.Conv2d(32, 64, 3, stride=2, padding=1), Residual(64), Residual(64)),
        *(nn.Conv2d(64, 128, 3, stride=2, padding=1), Residual(128), Residual(128)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10 * BANDS)),
    )


def denoising_net() -> nn.Module:
    """Of 76 thousand parameters; what it says has the shape of what it sees."""
    return nn.Sequential(
        nn.Conv2d(_COLOURS, 32, 3, padding=1),
        *(Residual(32) for _ in range(4)),
        nn.Conv2d(32, _COLOURS, 3, padding=1),
    )


class ScoresOfPixels(nn.Sequential):
    """The scores come last, as those of characters do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for module in self:
            x = module(x)
        return x.permute(0, 2, 3, 1)


def colouring_net() -> nn.Module:
    """Of 85 thousand parameters; it has scores for each pixel that it sees."""
    return ScoresOfPixels(
        nn.Conv2d(1, 32, 3, padding=1),
        *(Residual(32) for _ in range(4)),
        nn.Conv2d(32, SHADES**2, 3, padding=1),
    )


def gpt() -> nn.Module:
    """Of 5.1 million parameters."""
    return Transformer(width=264, depth=6)


TASKS: Final = {
    task.name: task
    for task in (
        Task("text", Transformer, _text, lambda: characters()[1], steps=500, batch=4),
        Task(
            *("dropping", Transformer, _text, lambda: characters()[1]),
            steps=500,
            batch=4,
            schedule=dropping,
        ),
        Task(
            *("accumulating", Transformer, _text, lambda: characters()[1]),
            steps=500,
            batch=2,
            passes=4,
        ),
        Task("photos", residual_net, _SMALL.draw, _SMALL.held_out, steps=300, batch=8),
        Task(
            "gpt",
            gpt,
            _text,
            _some_text,
            steps=300,
            batch=2,
            schedule=warmup_stable_decay,
            clip=1.0,
        ),
        Task(
            *("resnet", large_residual_net, _LARGE.draw, _LARGE.held_out),
            steps=400,
            batch=8,
            schedule=dropping,
        ),
        Task(
            *("fine-tuning", gpt, lambda size, g: _drawn(_help()[0], size, g), lambda: _help()[1]),
            steps=160,
            batch=2,
            schedule=constant,
            clip=1.0,
            begins_from="gpt",
        ),
        Task(
            *("denoising", denoising_net, _NOISY.draw, _NOISY.held_out),
            steps=300,
            batch=8,
            schedule=half_cosine,
            criterion=functional.mse_loss,
        ),
        Task(
            *("photographs", large_residual_net, _LARGE.draw, _LARGE.held_out),
            steps=400,
            batch=8,
            schedule=half_cosine,
        ),
        Task(
            *("colouring", colouring_net, _GREY.draw, _GREY.held_out),
            steps=300,
            batch=8,
            schedule=half_cosine,
        ),
    )
}
