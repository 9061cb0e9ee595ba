"""GPT-2 and BERT in plain torch: the published shapes, without dropout."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

HEAD_WIDTH = 64
DEVIATION = 0.02  # of initial weights, in both papers


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=DEVIATION)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


class Attention(nn.Module):
    """Self-attention; `fused`: queries, keys and values are one matrix, as in GPT-2."""

    def __init__(self, width: int, causal: bool, fused: bool) -> None:
        super().__init__()
        self.causal, self.heads = causal, width // HEAD_WIDTH
        parts = [3 * width] if fused else [width] * 3
        self.inputs = nn.ModuleList(nn.Linear(width, part) for part in parts)
        self.output = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, tokens, width = x.shape
        parts = torch.cat([layer(x) for layer in self.inputs], -1).chunk(3, -1)
        query, key, value = (
            part.view(rows, tokens, self.heads, HEAD_WIDTH).transpose(1, 2) for part in parts
        )
        y = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        mixed: torch.Tensor = self.output(y.transpose(1, 2).reshape(rows, tokens, width))
        return mixed


class Block(nn.Module):
    """Attention and a network of two layers; normalised before (GPT-2) or after (BERT)."""

    def __init__(self, width: int, gpt: bool) -> None:
        super().__init__()
        self.before = gpt
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, gpt, gpt)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.before:
            x = x + self.attention(self.norm1(x))
            return x + self._network(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        y: torch.Tensor = self.norm2(x + self._network(x))
        return y

    def _network(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.down(F.gelu(self.up(x)))
        return y


class Gpt2(nn.Module):
    """GPT-2 (Radford et al., 2019); its output layer is the embedding."""

    def __init__(self, width: int, blocks: int, words: int = 50_257, context: int = 1024) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, gpt=True) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        self.apply(_initialise)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        y = self.norm(self.blocks(self.words(tokens) + self.places(places)))
        return F.linear(y, self.words.weight)


class Bert(nn.Module):
    """BERT's encoder with its pooler (Devlin et al., NAACL 2019), without a head."""

    def __init__(self, width: int, blocks: int, words: int = 30_522, context: int = 512) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(context, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.blocks = nn.Sequential(*(Block(width, gpt=False) for _ in range(blocks)))
        self.pooler = nn.Linear(width, width)
        self.apply(_initialise)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places(places) + self.kinds(torch.zeros_like(tokens))
        y = self.blocks(self.norm(x))
        return torch.tanh(self.pooler(y[:, 0]))
