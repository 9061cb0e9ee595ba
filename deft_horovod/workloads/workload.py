"""Workload: a model as layers with tensors and relative times.

A layer is what owns parameters and runs as one operation; its share of the computing time is its
share of multiply-accumulate operations. Sizes are scaled as one, so that a model of hundreds of
megabytes fits a slow emulated link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

ITEM_BYTES: Final = 4  # float32
FORWARD_SHARE: Final = 1 / 3  # of the computing time; backward takes twice as long as forward


@dataclass(frozen=True)
class LayerTensor:
    name: str
    elements: int


@dataclass(frozen=True)
class Layer:
    """One operation: its own tensors, and those that it shares with an earlier layer."""

    name: str
    work: float  # relative time, the same in both stages
    tensors: tuple[LayerTensor, ...] = ()
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


def tensors_of(**elements: int) -> tuple[LayerTensor, ...]:
    return tuple(LayerTensor(name, count) for name, count in elements.items())
