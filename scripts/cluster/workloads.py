"""What the emulated accelerator computes: layers with tensors and relative times of real models.

Pure numbers: no torch, no Horovod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from deft_horovod.workloads.images import resnet, vgg
from deft_horovod.workloads.text import gpt2_of
from deft_horovod.workloads.workload import Workload

# What TCP carries of a shaped link's rate, without headers (474 of 500 Mbit/s in a ring of 4).
GOODPUT = 0.948


def gradient_bytes(ranks: int, rate_mbit: float, ccr: float, compute_s: float) -> float:
    """Gradients for which the all-reduce alone takes `ccr` times the computing time.

    A ring over n ranks sends 2(n-1)/n of them over each link.
    """
    carried = rate_mbit * 1e6 / 8 * GOODPUT * ccr * compute_s
    return carried * ranks / (2 * (ranks - 1))


def vgg19() -> Workload:
    """VGG-19 (configuration E) on 224 x 224 pixels: two tensors hold 83 % of the bytes."""
    return vgg("vgg19", (2, 2, 4, 4, 4))


def resnet101() -> Workload:
    """ResNet-101 on 224 x 224 pixels: 314 tensors, no large ones."""
    return resnet("resnet101", (3, 4, 23, 3))


def gpt2() -> Workload:
    """GPT-2 small at 1,024 tokens. The embedding is used first in forward and once more by the
    head; it holds 31 % of the bytes, and its gradient is complete last."""
    return gpt2_of("gpt2", width=768, blocks=12)


WORKLOADS: Mapping[str, Callable[[], Workload]] = MappingProxyType(
    {"vgg19": vgg19, "resnet101": resnet101, "gpt2": gpt2}
)
