"""A parameter as planning sees it: how much travels for it, in which form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod
from types import MappingProxyType
from typing import Final

from deft_horovod.errors import NotSupportedError, explain

# Bytes of one element on the wire.
WIRE_ITEM_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {"float16": 2, "float32": 4, "float64": 8}
)

# How a gradient of each dtype may travel: first as it is, then with fp16 compression.
# Horovod 0.28.1 cannot move bfloat16, so that one travels as float32.
WIRES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "float16": ("float16",),
        "float32": ("float32", "float16"),
        "float64": ("float64", "float16"),
        "bfloat16": ("float32", "float16"),
    }
)


# Tensors with fewer of either travel as they are.
_LEAST_DIMENSIONS: Final = 2
_LEAST_ELEMENTS: Final = 4096


def stays_exact(name: str, shape: Sequence[int], patterns: str = "") -> bool:
    """Whether a gradient is never rounded. Vectors (norms, biases) and small tensors are next to
    nothing of the bytes, and rounding hurts them most. `patterns`: of the user's own, with * and ?,
    separated by commas."""
    asked = any(fnmatchcase(name, pattern.strip()) for pattern in patterns.split(","))
    return asked or len(shape) < _LEAST_DIMENSIONS or prod(shape) < _LEAST_ELEMENTS


@dataclass(frozen=True)
class Parameter:
    """One tensor of the optimizer.

    ``device`` has to read the same on all ranks, so it is ``"cuda"`` and not ``"cuda:1"`` where
    each rank has a device of its own.
    """

    name: str
    elements: int
    dtype: str
    wire: str
    device: str
    exact: bool = False  # travels as it is, in whatever format its bucket does

    def __post_init__(self) -> None:
        if self.wire not in WIRES.get(self.dtype, ()):
            allowed = "; ".join(f"{dtype} as {' or '.join(WIRES[dtype])}" for dtype in WIRES)
            raise NotSupportedError(
                explain(
                    "a gradient of this kind cannot travel",
                    tensor=self.name,
                    observed=f"{self.dtype} as {self.wire}",
                    expected=allowed,
                    action="convert the parameter, or leave it out of this optimizer",
                )
            )
        if self.elements < 0:
            raise NotSupportedError(
                explain(
                    "a parameter has a negative size",
                    tensor=self.name,
                    observed=f"{self.elements} elements",
                    expected="0 or more",
                )
            )

    @property
    def bytes(self) -> int:
        """The gradient's own bytes on the wire, without its slot's header."""
        return self.elements * WIRE_ITEM_BYTES[self.wire]
