"""What the emulated accelerator computes: layers with tensors and relative times of real models.

Pure numbers: no torch, no Horovod. A layer is what owns parameters and runs as one operation; its
share of the computing time is its share of multiply-accumulate operations. Sizes are scaled as one,
so that a model of hundreds of megabytes fits a slow emulated link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

ITEM_BYTES = 4  # float32
FORWARD_SHARE = 1 / 3  # of the computing time; backward takes twice as long as forward
# What TCP carries of a shaped link's rate, without headers (474 of 500 Mbit/s in a ring of 4).
GOODPUT = 0.948


@dataclass(frozen=True)
class Tensor:
    name: str
    elements: int


@dataclass(frozen=True)
class Layer:
    """One operation: its own tensors, and those that it shares with an earlier layer."""

    name: str
    work: float  # relative time, the same in both stages
    tensors: tuple[Tensor, ...] = ()
    shared: tuple[str, ...] = ()  # "layer.tensor"


@dataclass(frozen=True)
class Workload:
    """A model in the order of its forward stage."""

    name: str
    layers: tuple[Layer, ...]

    @property
    def elements(self) -> int:
        return sum(tensor.elements for layer in self.layers for tensor in layer.tensors)

    @property
    def size_bytes(self) -> int:
        return self.elements * ITEM_BYTES

    @property
    def tensors(self) -> int:
        return sum(len(layer.tensors) for layer in self.layers)

    def scaled(self, size_bytes: float) -> Workload:
        """The same model with gradients of this size; every tensor keeps at least one element."""
        wanted = max(self.tensors, round(size_bytes / ITEM_BYTES))
        shared = wanted - self.tensors
        sizes = [
            1 + t.elements * shared // self.elements for layer in self.layers for t in layer.tensors
        ]
        # What rounding leaves, less than one element for each tensor, is hardly seen there.
        sizes[sizes.index(max(sizes))] += wanted - sum(sizes)
        rest = iter(sizes)
        return replace(
            self,
            layers=tuple(
                replace(
                    layer, tensors=tuple(replace(t, elements=next(rest)) for t in layer.tensors)
                )
                for layer in self.layers
            ),
        )

    def stage_s(self, compute_s: float) -> list[tuple[float, float]]:
        """Seconds of each layer in forward and in backward, for a step of that much computing."""
        whole = sum(layer.work for layer in self.layers)
        shares = [layer.work / whole for layer in self.layers]
        forward_s = compute_s * FORWARD_SHARE
        return [(share * forward_s, share * (compute_s - forward_s)) for share in shares]


def gradient_bytes(ranks: int, rate_mbit: float, ccr: float, compute_s: float) -> float:
    """Gradients for which the all-reduce alone takes `ccr` times the computing time.

    A ring over n ranks sends 2(n-1)/n of them over each link.
    """
    carried = rate_mbit * 1e6 / 8 * GOODPUT * ccr * compute_s
    return carried * ranks / (2 * (ranks - 1))


def _tensors(**elements: int) -> tuple[Tensor, ...]:
    return tuple(Tensor(name, count) for name, count in elements.items())


def vgg19() -> Workload:
    """VGG-19 (configuration E) on 224 x 224 pixels: two tensors hold 83 % of the bytes."""
    return vgg("vgg19", (2, 2, 4, 4, 4))


def vgg(name: str, counts: Sequence[int]) -> Workload:
    """`counts`: convolutions of each block."""
    layers, channels, width = [], 3, 224
    for block, (count, filters) in enumerate(zip(counts, (64, 128, 256, 512, 512), strict=True), 1):
        for number in range(1, count + 1):
            weights = 9 * channels * filters
            tensors = _tensors(weight=weights, bias=filters)
            layers.append(Layer(f"conv{block}_{number}", float(weights * width**2), tensors))
            channels = filters
        width //= 2
    inputs = channels * width**2
    for layer, outputs in (("fc6", 4096), ("fc7", 4096), ("fc8", 1000)):
        weights = inputs * outputs
        layers.append(Layer(layer, float(weights), _tensors(weight=weights, bias=outputs)))
        inputs = outputs
    return Workload(name, tuple(layers))


def resnet101() -> Workload:
    """ResNet-101 on 224 x 224 pixels: 314 tensors, no large ones."""
    return resnet("resnet101", (3, 4, 23, 3))


def resnet(model: str, counts: Sequence[int]) -> Workload:
    """`counts`: bottleneck blocks of each stage."""
    layers: list[Layer] = []

    def convolve(name: str, inputs: int, outputs: int, kernel: int, width: int) -> None:
        weights = kernel**2 * inputs * outputs
        tensors = _tensors(weight=weights, norm_weight=outputs, norm_bias=outputs)
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
    layers.append(Layer("fc", float(channels * 1000), _tensors(weight=channels * 1000, bias=1000)))
    return Workload(model, tuple(layers))


def gpt2() -> Workload:
    """GPT-2 small at 1,024 tokens. The embedding is used first in forward and once more by the
    head; it holds 31 % of the bytes, and its gradient is complete last."""
    return gpt2_of("gpt2", width=768, blocks=12)


def gpt2_of(name: str, width: int, blocks: int) -> Workload:
    words, context = 50_257, 1024
    embedding = _tensors(wte=words * width, wpe=context * width)
    layers = [Layer("embedding", float(width), embedding)]
    for block in range(blocks):
        attention = _tensors(
            norm_weight=width,
            norm_bias=width,
            attn_weight=3 * width**2,
            attn_bias=3 * width,
            proj_weight=width**2,
            proj_bias=width,
        )
        network = _tensors(
            norm_weight=width,
            norm_bias=width,
            fc_weight=4 * width**2,
            fc_bias=4 * width,
            proj_weight=4 * width**2,
            proj_bias=width,
        )
        scores = 2 * context * width
        layers.append(Layer(f"attention{block}", 4.0 * width**2 + scores, attention))
        layers.append(Layer(f"mlp{block}", 8.0 * width**2, network))
    layers.append(Layer("norm", float(width), _tensors(weight=width, bias=width)))
    layers.append(Layer("head", float(words * width), shared=("embedding.wte",)))
    return Workload(name, tuple(layers))


WORKLOADS: Mapping[str, Callable[[], Workload]] = MappingProxyType(
    {"vgg19": vgg19, "resnet101": resnet101, "gpt2": gpt2}
)
