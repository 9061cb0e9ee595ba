"""Shapes of the models of published comparisons, from the definitions of their architectures.

A layer is what owns parameters and runs as one operation; its `work` is its multiply-accumulate
operations for one sample (for one token in GPT-2 and BERT), without those of normalisation. How
many parameters come out is checked against published counts
(scripts/studies/reproduce/published/models.json).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from scripts.cluster.workloads import Layer, Tensor, Workload, gpt2_of, resnet, vgg

CLASSES = 1000


def _convolution(
    name: str, inputs: int, outputs: int, kernel: tuple[int, int], width: int, normed: int
) -> Layer:
    """Without a bias; `normed`: channels of the normalisation that belongs to it."""
    weights = inputs * outputs * kernel[0] * kernel[1]
    tensors = (
        Tensor("weight", weights),
        Tensor("norm_weight", normed),
        Tensor("norm_bias", normed),
    )
    return Layer(name, float(weights * width**2), tensors)


def _classifier(inputs: int) -> Layer:
    weights = inputs * CLASSES
    return Layer("fc", float(weights), (Tensor("weight", weights), Tensor("bias", CLASSES)))


def densenet(name: str, blocks: Sequence[int], growth: int = 32) -> Workload:
    """DenseNet-BC on 224 x 224 pixels (Huang et al., CVPR 2017, table 1)."""
    channels, width = 2 * growth, 56
    layers = [_convolution("conv0", 3, channels, (7, 7), 112, channels)]
    for block, count in enumerate(blocks, 1):
        for number in range(count):
            inner = 4 * growth
            place = f"block{block}_{number}"
            # Normalisation stands before the convolution, so it has the channels that come in.
            bottleneck = _convolution(f"{place}_conv1", channels, inner, (1, 1), width, channels)
            layers.append(bottleneck)
            layers.append(_convolution(f"{place}_conv2", inner, growth, (3, 3), width, inner))
            channels += growth
        if block < len(blocks):
            half = channels // 2
            transition = _convolution(f"transition{block}", channels, half, (1, 1), width, channels)
            layers.append(transition)
            channels, width = half, width // 2
    norm = (Tensor("weight", channels), Tensor("bias", channels))
    return Workload(name, (*layers, Layer("norm", float(channels), norm), _classifier(channels)))


class _Inception:
    """Inception-v4 on 299 x 299 pixels (Szegedy et al., AAAI 2017, figures 3 to 9)."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []

    def branch(self, name: str, inputs: int, *steps: tuple[int, tuple[int, int], int]) -> int:
        """Convolutions one after another: (channels, kernel, width of what comes out)."""
        for number, (outputs, kernel, width) in enumerate(steps, 1):
            place = f"{name}_{number}"
            self.layers.append(_convolution(place, inputs, outputs, kernel, width, outputs))
            inputs = outputs
        return inputs

    def stem(self) -> None:
        three, one, row, column = (3, 3), (1, 1), (1, 7), (7, 1)
        self.branch("stem", 3, (32, three, 149), (32, three, 147), (64, three, 147))
        self.branch("stem_a", 64, (96, three, 73))
        self.branch("stem_b", 160, (64, one, 73), (96, three, 71))
        self.branch("stem_c", 160, (64, one, 73), (64, row, 73), (64, column, 73), (96, three, 71))
        self.branch("stem_d", 192, (192, three, 35))

    def block_a(self, name: str) -> None:
        three, one, width = (3, 3), (1, 1), 35
        self.branch(f"{name}a", 384, (96, one, width))
        self.branch(f"{name}b", 384, (64, one, width), (96, three, width))
        self.branch(f"{name}c", 384, (64, one, width), (96, three, width), (96, three, width))
        self.branch(f"{name}d", 384, (96, one, width))

    def reduction_a(self) -> None:
        self.branch("reduce1a", 384, (384, (3, 3), 17))
        self.branch("reduce1b", 384, (192, (1, 1), 35), (224, (3, 3), 35), (256, (3, 3), 17))

    def block_b(self, name: str) -> None:
        one, row, column, width = (1, 1), (1, 7), (7, 1), 17
        self.branch(f"{name}a", 1024, (384, one, width))
        self.branch(f"{name}b", 1024, (192, one, width), (224, row, width), (256, column, width))
        self.branch(
            f"{name}c",
            1024,
            (192, one, width),
            (192, column, width),
            (224, row, width),
            (224, column, width),
            (256, row, width),
        )
        self.branch(f"{name}d", 1024, (128, one, width))

    def reduction_b(self) -> None:
        self.branch("reduce2a", 1024, (192, (1, 1), 17), (192, (3, 3), 8))
        self.branch(
            "reduce2b",
            1024,
            (256, (1, 1), 17),
            (256, (1, 7), 17),
            (320, (7, 1), 17),
            (320, (3, 3), 8),
        )

    def block_c(self, name: str) -> None:
        one, row, column, width = (1, 1), (1, 3), (3, 1), 8
        self.branch(f"{name}a", 1536, (256, one, width))
        split = self.branch(f"{name}b", 1536, (384, one, width))
        self.branch(f"{name}b_row", split, (256, row, width))
        self.branch(f"{name}b_column", split, (256, column, width))
        split = self.branch(
            f"{name}c", 1536, (384, one, width), (448, column, width), (512, row, width)
        )
        self.branch(f"{name}c_row", split, (256, row, width))
        self.branch(f"{name}c_column", split, (256, column, width))
        self.branch(f"{name}d", 1536, (256, one, width))


def inception_v4() -> Workload:
    model = _Inception()
    model.stem()
    for number in range(4):
        model.block_a(f"a{number}")
    model.reduction_a()
    for number in range(7):
        model.block_b(f"b{number}")
    model.reduction_b()
    for number in range(3):
        model.block_c(f"c{number}")
    return Workload("inception_v4", (*model.layers, _classifier(1536)))


def _linear(layer: str, inputs: int, outputs: int) -> tuple[Tensor, ...]:
    return Tensor(f"{layer}_weight", inputs * outputs), Tensor(f"{layer}_bias", outputs)


def _norm(layer: str, width: int) -> tuple[Tensor, ...]:
    return Tensor(f"{layer}_weight", width), Tensor(f"{layer}_bias", width)


def bert(name: str, width: int, blocks: int, tokens: int, pretraining: bool = False) -> Workload:
    """BERT (Devlin et al., NAACL 2019) with its vocabulary of 30,522 words.

    `pretraining` adds the heads for masked words, which share the embedding, and for the next
    sentence; without them it is the encoder with its pooler.
    """
    words, places = 30_522, 512
    embedding = (
        Tensor("words", words * width),
        Tensor("places", places * width),
        Tensor("kinds", 2 * width),
        *_norm("norm", width),
    )
    layers = [Layer("embedding", float(width), embedding)]
    for block in range(blocks):
        attention = [_linear(part, width, width) for part in ("query", "key", "value", "output")]
        inside = (*(tensor for part in attention for tensor in part), *_norm("norm", width))
        layers.append(Layer(f"attention{block}", 4.0 * width**2 + 2 * tokens * width, inside))
        feed = (*_linear("up", width, 4 * width), *_linear("down", 4 * width, width))
        layers.append(Layer(f"feed{block}", 8.0 * width**2, (*feed, *_norm("norm", width))))
    layers.append(Layer("pooler", width**2 / tokens, _linear("dense", width, width)))
    if pretraining:
        head = (*_linear("dense", width, width), *_norm("norm", width), Tensor("bias", words))
        shared = ("embedding.words",)
        layers.append(Layer("head", float(width**2 + words * width), head, shared))
        layers.append(Layer("next", 2 * width / tokens, _linear("dense", width, 2)))
    return Workload(name, tuple(layers))


# Sentences of 64 tokens, as the published benchmark scripts have them.
_TOKENS = 64

SHAPES: Mapping[str, Callable[[], Workload]] = MappingProxyType(
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
