"""A small GPT on bytes of real text: what Python's own help says."""

from __future__ import annotations

import pydoc_data.topics
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

BYTES = 256
_HELD_OUT = 16  # every so-many-th window


class Block(nn.Module):
    """Attention and two linear layers, each behind its norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.between = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        parts = self.qkv(self.before(x)).chunk(3, dim=-1)
        q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(mixed.transpose(1, 2).reshape(x.shape))
        deeper: torch.Tensor = self.narrow(F.gelu(self.wide(self.between(x))))
        return x + deeper


class Gpt(nn.Module):
    """Its output layer is the embedding."""

    def __init__(self, width: int, layers: int, length: int, heads: int = 4) -> None:
        super().__init__()
        self.tokens = nn.Embedding(BYTES, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.places.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.last(x), self.tokens.weight)


def loss_of(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
    """Of the next byte, in nats."""
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def text() -> torch.Tensor:
    """Half a megabyte."""
    joined = "".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    return torch.frombuffer(bytearray(joined.encode()), dtype=torch.uint8).long()


def windows_of(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For training, and held out."""
    data = text()
    whole = data[: len(data) // (length + 1) * (length + 1)].view(-1, length + 1)
    held = torch.arange(len(whole)) % _HELD_OUT == 0
    return whole[~held], whole[held]


def batches(windows: torch.Tensor, size: int, seed: int) -> Iterator[torch.Tensor]:
    """Of one rank, without end."""
    draw = torch.Generator().manual_seed(seed)
    while True:
        yield windows[torch.randint(len(windows), (size,), generator=draw)]
