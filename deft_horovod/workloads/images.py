"""Models of images, from the definitions of their architectures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deft_horovod.workloads.workload import Layer, LayerTensor, Workload, tensors_of

CLASSES: Final = 1000


def _convolution(
    name: str, inputs: int, outputs: int, kernel: tuple[int, int], width: int, normed: int
) -> Layer:
    """Without a bias; `normed`: channels of the normalisation that belongs to it."""
    weights = inputs * outputs * kernel[0] * kernel[1]
    tensors = (
        LayerTensor("weight", weights),
        LayerTensor("norm_weight", normed),
        LayerTensor("norm_bias", normed),
    )
    return Layer(name, float(weights * width**2), tensors)


def _classifier(inputs: int) -> Layer:
    weights = inputs * CLASSES
    return Layer(
        "fc", float(weights), (LayerTensor("weight", weights), LayerTensor("bias", CLASSES))
    )


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
    norm = (LayerTensor("weight", channels), LayerTensor("bias", channels))
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


def vgg(name: str, counts: Sequence[int]) -> Workload:
    """`counts`: convolutions of each block."""
    layers, channels, width = [], 3, 224
    for block, (count, filters) in enumerate(zip(counts, (64, 128, 256, 512, 512), strict=True), 1):
        for number in range(1, count + 1):
            weights = 9 * channels * filters
            tensors = tensors_of(weight=weights, bias=filters)
            layers.append(Layer(f"conv{block}_{number}", float(weights * width**2), tensors))
            channels = filters
        width //= 2
    inputs = channels * width**2
    for layer, outputs in (("fc6", 4096), ("fc7", 4096), ("fc8", 1000)):
        weights = inputs * outputs
        layers.append(Layer(layer, float(weights), tensors_of(weight=weights, bias=outputs)))
        inputs = outputs
    return Workload(name, tuple(layers))


def resnet(model: str, counts: Sequence[int]) -> Workload:
    """`counts`: bottleneck blocks of each stage."""
    layers: list[Layer] = []

    def convolve(name: str, inputs: int, outputs: int, kernel: int, width: int) -> None:
        weights = kernel**2 * inputs * outputs
        tensors = tensors_of(weight=weights, norm_weight=outputs, norm_bias=outputs)
        layers.append(Layer(name, float(weights * width**2), tensors))

    convolve("conv1", 3, 64, 7, 112)
    channels = 64
    for stage, (count, width) in enumerate(zip(counts, (56, 28, 14, 7), strict=True), 1):
        inner = 32 * 2**stage
        for block in range(count):
            name = f"layer{stage}_{block}"
            before = 2 * width if stage > 1 and block == 0 else width  # the 3 x 3 one strides
            convolve(f"{name}_conv1", channels, inner, 1, before)
            convolve(f"{name}_conv2", inner, inner, 3, width)
            convolve(f"{name}_conv3", inner, 4 * inner, 1, width)
            if block == 0:
                convolve(f"{name}_downsample", channels, 4 * inner, 1, width)
            channels = 4 * inner
    return Workload(model, (*layers, _classifier(channels)))
