"""What the convergence study trains: real models on data that is at hand without a network."""

from __future__ import annotations

import functools
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import nn
from torch.nn import functional

_CONTEXT: Final = 48  # characters
_CHARACTERS: Final = 96  # printable ASCII, and one for all others
_TEXT_BYTES: Final = 2_000_000

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Task:
    """A model and its data. `first` are the prefixes of the parameters that forward uses first, in
    its order, by which plans delay some of them."""

    name: str
    model: Callable[[], nn.Module]
    data: Callable[[], tuple[Batch, Batch]]  # for training and for validation
    first: tuple[str, ...]
    steps: int
    batch: int  # of each worker

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        inputs, targets = batch
        return functional.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, 4, width // 4).transpose(1, 2)
            for part in self.mix(self.norms[0](x)).chunk(3, dim=-1)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        out: torch.Tensor = x + self.feed(self.norms[1](x))
        return out


class Transformer(nn.Module):
    """Of characters."""

    def __init__(self, width: int = 64, depth: int = 2, context: int = _CONTEXT) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_CHARACTERS, width)
        self.positions = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, _CHARACTERS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(x) + self.positions[: x.shape[1]]
        for block in self.blocks:
            hidden = block(hidden)
        scores: torch.Tensor = self.head(self.norm(hidden))
        return scores


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inside = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(4, width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(4, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.inside(x))


def convolutions() -> nn.Module:
    """ResNet-like; groups of channels are normalised, as workers share no statistics of batches."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        Residual(16),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        Residual(32),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        *(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()),
        *(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)),
    )


@functools.cache
def characters() -> tuple[Batch, Batch]:
    """The sources of Python's standard library."""
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return windows(b"".join(path.read_bytes() for path in sources)[:_TEXT_BYTES], 512)


def windows(text: bytes, held_out: int, context: int = _CONTEXT) -> tuple[Batch, Batch]:
    """Of a model's context; so many of them are for validation."""
    codes = torch.frombuffer(bytearray(text), dtype=torch.uint8).long() - 31
    codes[(codes < 1) | (codes > 95)] = 0
    count = (len(codes) - 1) // context
    inputs = codes[: count * context].view(count, context)
    targets = codes[1 : count * context + 1].view(count, context)
    return _split(inputs, targets, held_out)


@functools.cache
def digits() -> tuple[Batch, Batch]:
    """The 1,797 digits of scikit-learn, 8 by 8."""
    from sklearn import datasets

    images, targets = datasets.load_digits(return_X_y=True)
    return _split(
        torch.tensor(images, dtype=torch.float32).view(-1, 8, 8) / 8.0 - 1.0,
        torch.tensor(targets),
        450,
    )


def _split(inputs: torch.Tensor, targets: torch.Tensor, held_out: int) -> tuple[Batch, Batch]:
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(0))
    rest, held = order[held_out:], order[:held_out]
    return (inputs[rest], targets[rest]), (inputs[held], targets[held])


def batches(data: Batch, size: int, generator: torch.Generator) -> Iterator[Batch]:
    """For ever; each pass in another order."""
    inputs, targets = data
    while True:
        order = torch.randperm(len(inputs), generator=generator)
        for begin in range(0, len(order) - size + 1, size):
            chosen = order[begin : begin + size]
            yield inputs[chosen], targets[chosen]


TASKS: Final = {
    task.name: task
    for task in (
        Task(
            name="transformer",
            model=Transformer,
            data=characters,
            first=("embedding", "positions", "blocks.0", "blocks.1"),
            steps=500,
            batch=4,
        ),
        Task(
            name="cnn",
            model=convolutions,
            data=digits,
            first=("1", "2", "3", "4"),
            steps=300,
            batch=8,
        ),
        Task(
            name="mlp",
            model=perceptron,
            data=digits,
            first=("1", "3", "5", "7"),
            steps=300,
            batch=8,
        ),
    )
}
