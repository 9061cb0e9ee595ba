"""What the emulated accelerator computes: layers with tensors and relative times of real models.

Pure numbers: no torch, no Horovod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from deft_horovod.workloads.catalogue import SHAPES
from deft_horovod.workloads.workload import Workload

# What TCP carries of a shaped link's rate, without headers (474 of 500 Mbit/s in a ring of 4).
GOODPUT = 0.948


def gradient_bytes(ranks: int, rate_mbit: float, ccr: float, compute_s: float) -> float:
    """Gradients for which the all-reduce alone takes `ccr` times the computing time.

    A ring over n ranks sends 2(n-1)/n of them over each link.
    """
    carried = rate_mbit * 1e6 / 8 * GOODPUT * ccr * compute_s
    return carried * ranks / (2 * (ranks - 1))


# Two tensors hold 83 % of the bytes of VGG-19; ResNet-101 has 314 and no large ones; the embedding
# of GPT-2, 31 % of the bytes, is used first in forward, and its gradient is complete last.
WORKLOADS: Mapping[str, Callable[[], Workload]] = MappingProxyType(
    {name: SHAPES[name] for name in ("vgg19", "resnet101", "gpt2")}
)
