"""Models as users have them, scaled down: architectures of the package transformers with random
weights, on text and photographs that packages ship."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from scripts.benchmarks.real_models.gpt import BYTES, Gpt, batches, loss_of, windows_of
from scripts.studies.formats.photographs import BANDS, Crops, ten

Batch = Any  # what the loss takes
_MASK: Final = BYTES  # of BERT, one more than there are bytes
_MASKED: Final = 0.15  # of all bytes
_SIDE: Final = 32  # pixels
_CLASSES: Final = 10 * BANDS
_HELD_OUT: Final = 64  # samples


@dataclass(frozen=True)
class Subject:
    """A model and what it learns from."""

    model: nn.Module
    data: Callable[[int], Iterator[Batch]]  # without end, of a seed
    loss: Callable[[nn.Module, Batch], torch.Tensor]
    held_out: Batch


@dataclass(frozen=True)
class Size:
    width: int
    layers: int
    length: int  # of a text, in bytes
    batch: int


def gpt(size: Size) -> Subject:
    """Our own, which is the embedding on both ends."""
    return _of_text(Gpt(size.width, size.layers, size.length), size, loss_of)


def gpt2(size: Size) -> Subject:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=BYTES, n_positions=size.length, n_embd=size.width, n_layer=size.layers, n_head=4
    )
    return _of_text(GPT2LMHeadModel(config), size, _next_byte)


def bert(size: Size) -> Subject:
    """Finds bytes that are masked."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=BYTES + 1,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=4,
        intermediate_size=4 * size.width,
        max_position_embeddings=size.length + 1,
    )
    return _of_text(BertForMaskedLM(config), size, _masked_bytes)


def resnet50(size: Size) -> Subject:
    """Its depth, and a quarter of its width at `width` 256."""
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        embedding_size=size.width // 16,
        hidden_sizes=[size.width // 4 * factor for factor in (1, 2, 4, 8)],
        depths=[3, 4, 6, 3],
    )
    config.num_labels = _CLASSES
    return _of_photographs(ResNetForImageClassification(config), size)


def vit(size: Size) -> Subject:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=4,
        intermediate_size=4 * size.width,
        image_size=_SIDE,
        patch_size=4,
    )
    config.num_labels = _CLASSES
    return _of_photographs(ViTForImageClassification(config), size)


MODELS: Final[Mapping[str, Callable[[Size], Subject]]] = {
    "gpt": gpt,
    "gpt2": gpt2,
    "bert": bert,
    "resnet50": resnet50,
    "vit": vit,
}


def _of_text(
    model: nn.Module, size: Size, loss: Callable[[nn.Module, Batch], torch.Tensor]
) -> Subject:
    train, held = windows_of(size.length)
    return Subject(
        model, lambda seed: batches(train, size.batch, seed), loss, held[:_HELD_OUT].clone()
    )


def _of_photographs(model: nn.Module, size: Size) -> Subject:
    crops = Crops(ten, _SIDE)

    def data(seed: int) -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            yield crops.draw(size.batch, generator)

    images, labels = crops.held_out()
    return Subject(model, data, _classes, (images[:_HELD_OUT], labels[:_HELD_OUT]))


def _next_byte(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
    logits = model(windows[:, :-1]).logits
    return nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def _masked_bytes(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
    """Which ones follows from the bytes, so that all arms are asked for the same."""
    draw = torch.Generator().manual_seed(int(windows.sum()))
    masked = torch.rand(windows.shape, generator=draw) < _MASKED
    logits = model(windows.masked_fill(masked, _MASK)).logits
    return nn.functional.cross_entropy(logits[masked], windows[masked])


def _classes(model: nn.Module, batch: Batch) -> torch.Tensor:
    images, labels = batch
    return nn.functional.cross_entropy(model(images).logits, labels)
