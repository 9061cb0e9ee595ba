"""Shapes of the models of published comparisons.

A layer's `work` is its multiply-accumulate operations for one sample (for one token in GPT-2 and
BERT), without those of normalisation. How many parameters come out is checked against published
counts (scripts/studies/reproduce/published/models.json).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from deft_horovod.workloads.images import densenet, inception_v4, resnet, vgg
from deft_horovod.workloads.text import bert, gpt2_of
from deft_horovod.workloads.workload import Workload

# Sentences of 64 tokens, as the published benchmark scripts have them.
_TOKENS: Final = 64

SHAPES: Final[Mapping[str, Callable[[], Workload]]] = MappingProxyType(
    {
        "vgg16": lambda: vgg("vgg16", (2, 2, 3, 3, 3)),
        "vgg19": lambda: vgg("vgg19", (2, 2, 4, 4, 4)),
        "resnet50": lambda: resnet("resnet50", (3, 4, 6, 3)),
        "resnet101": lambda: resnet("resnet101", (3, 4, 23, 3)),
        "resnet152": lambda: resnet("resnet152", (3, 8, 36, 3)),
        "densenet121": lambda: densenet("densenet121", (6, 12, 24, 16)),
        "densenet201": lambda: densenet("densenet201", (6, 12, 48, 32)),
        "inception_v4": inception_v4,
        "bert_base": lambda: bert("bert_base", 768, 12, _TOKENS),
        "bert_large": lambda: bert("bert_large", 1024, 24, _TOKENS),
        "bert_base_pretraining": lambda: bert(
            "bert_base_pretraining", 768, 12, _TOKENS, pretraining=True
        ),
        "bert_large_pretraining": lambda: bert(
            "bert_large_pretraining", 1024, 24, _TOKENS, pretraining=True
        ),
        "gpt2": lambda: gpt2_of("gpt2", 768, 12),
        "gpt2_medium": lambda: gpt2_of("gpt2_medium", 1024, 24),
    }
)
