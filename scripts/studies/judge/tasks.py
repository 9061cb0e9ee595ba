"""What is trained: tasks of the study of formats, with their parts by which a plan delays some of
them, and a larger model for a GPU."""

from __future__ import annotations

import functools
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import nn

from scripts.studies.convergence.tasks import Batch, Transformer, windows
from scripts.studies.formats.schedules import half_cosine
from scripts.studies.formats.task import Task
from scripts.studies.formats.tasks import TASKS as FORMATS

_CONTEXT: Final = 256
_WIDTH, _DEPTH = 512, 8
_TEXT_BYTES: Final = 20_000_000
_VALIDATED: Final = 64  # windows
_BLOCKS: Final = tuple(f"blocks.{i}." for i in range(_DEPTH // 2))
_EMBEDDING: Final = ("embedding", "positions")


@dataclass(frozen=True)
class Judged:
    """`first` are prefixes of the names of the parameters of the first layer, `half` those of the
    rest of the half that forward uses first."""

    task: Task
    first: tuple[str, ...]
    half: tuple[str, ...]
    margin: float  # of the loss: more is harm
    held_out: bool = False  # no choice was made by it
    autocast: bool = False  # computes in bf16

    def late(self, parts: int) -> tuple[str, ...]:
        """Prefixes of what is late: all (-1), nothing, the first layer, the first half."""
        return ("",) if parts < 0 else ((), self.first, self.first + self.half)[parts]


@functools.cache
def _sources() -> tuple[Batch, Batch]:
    """All of Python's standard library."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("**/*.py"))
    paths = [path for path in paths if "site-packages" not in path.parts]
    text = b"".join(path.read_bytes() for path in paths)[:_TEXT_BYTES]
    return windows(text, _VALIDATED, _CONTEXT)


def _draw(size: int, generator: torch.Generator) -> Batch:
    inputs, targets = _sources()[0]
    chosen = torch.randint(len(inputs), (size,), generator=generator)
    return inputs[chosen], targets[chosen]


def large_gpt() -> nn.Module:
    """Of 25 million parameters."""
    return Transformer(_WIDTH, _DEPTH, _CONTEXT)


LARGE: Final = Task(
    *("large gpt", large_gpt, _draw, lambda: _sources()[1]),
    steps=400,
    batch=8,
    schedule=half_cosine,
)
JUDGED: Final = {
    judged.task.name: judged
    for judged in (
        Judged(FORMATS["text"], _EMBEDDING, _BLOCKS[:1], 0.01),
        Judged(FORMATS["colouring"], ("0.",), ("1.", "2."), 0.02),
        Judged(FORMATS["denoising"], ("0.",), ("1.", "2."), 0.02, held_out=True),
        Judged(LARGE, _EMBEDDING, _BLOCKS, 0.01, held_out=True, autocast=True),
    )
}
