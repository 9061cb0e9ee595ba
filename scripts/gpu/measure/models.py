"""Real models to train on a GPU, with batches and losses; plain torch, nothing else is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from scripts.gpu.measure.models_images import CLASSES, ResNet, Vgg
from scripts.gpu.measure.models_text import Bert, Gpt2

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Kind:
    """A model and what it is trained on."""

    make: Callable[[], nn.Module]
    parameters: int  # as published
    rows: int  # of a usual batch
    size: int  # pixels of an image's side, or tokens of a text
    words: int = 0  # 0: images
    predicts: bool = False  # the next token; else a class, or (BERT) given features
    features: int = CLASSES


MODELS: Mapping[str, Kind] = MappingProxyType(
    {
        "resnet50": Kind(lambda: ResNet((3, 4, 6, 3)), 25_557_032, 64, 224),
        "resnet101": Kind(lambda: ResNet((3, 4, 23, 3)), 44_549_160, 64, 224),
        "vgg19": Kind(lambda: Vgg((2, 2, 4, 4, 4)), 143_667_240, 64, 224),
        "gpt2": Kind(lambda: Gpt2(768, 12), 124_439_808, 8, 1024, 50_257, predicts=True),
        "gpt2_medium": Kind(lambda: Gpt2(1024, 24), 354_823_168, 4, 1024, 50_257, predicts=True),
        "bert_base": Kind(lambda: Bert(768, 12), 109_482_240, 32, 128, 30_522, features=768),
        # For dry runs: the same layers, few and narrow.
        "tiny_resnet": Kind(lambda: ResNet((1, 1, 1, 1), 8, 10), 130_962, 2, 32, features=10),
        "tiny_gpt2": Kind(lambda: Gpt2(64, 2, 100, 16), 107_520, 2, 16, 100, predicts=True),
    }
)
TINY = ("tiny_resnet", "tiny_gpt2")
REAL = tuple(name for name in MODELS if name not in TINY)


def parameter_count(model: nn.Module) -> int:
    """Of all tensors that train, each once."""
    return sum(parameter.numel() for parameter in model.parameters())


def make(name: str, device: torch.device | str, seed: int = 0) -> nn.Module:
    """The same values in every call and on every rank."""
    torch.manual_seed(seed)
    with torch.device(device):
        return MODELS[name].make()


def optimizer_of(name: str, model: nn.Module) -> torch.optim.Optimizer:
    """What such models are commonly trained with."""
    if MODELS[name].words:
        return torch.optim.AdamW(model.parameters(), lr=1e-4)
    return torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)


def batch_of(name: str, device: torch.device | str, seed: int = 0, rows: int = 0) -> Batch:
    """Random inputs and targets, other ones for each seed; `rows` 0: as many as usual."""
    kind = MODELS[name]
    count = rows or kind.rows
    generator = torch.Generator().manual_seed(1 + seed)
    if kind.words:
        shape = (count, kind.size + kind.predicts)
        tokens = torch.randint(0, kind.words, shape, generator=generator)
        if kind.predicts:
            return tokens[:, :-1].to(device), tokens[:, 1:].to(device)
        features = torch.rand(count, kind.features, generator=generator) * 2 - 1
        return tokens.to(device), features.to(device)
    images = torch.randn(count, 3, kind.size, kind.size, generator=generator)
    classes = torch.randint(0, kind.features, (count,), generator=generator)
    return images.to(device), classes.to(device)


def loss_of(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Cross entropy, or squared distance to given features."""
    inputs, targets = batch
    outputs = model(inputs)
    if targets.is_floating_point():
        return F.mse_loss(outputs, targets.to(outputs.dtype))
    return F.cross_entropy(outputs.flatten(0, -2), targets.flatten())
