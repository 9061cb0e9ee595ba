"""Crops of real photographs that packages ship. To be found out of each: which photograph it is
from, and which band of its rows."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
import torch
from PIL import Image

from scripts.studies.convergence.tasks import Batch

BANDS: Final = 4  # of rows
SHADES: Final = 6  # of red, and of blue, each beside green
# Of scikit-image, those in colour.
_SHIPPED: Final = (
    *("astronaut.png", "chelsea.png", "coffee.png", "hubble_deep_field.jpg", "ihc.png"),
    *("motorcycle_left.png", "retina.jpg", "rocket.jpg"),
)
_ROWS: Final = 300  # those of the smallest of them
_COLUMNS: Final = 440


@dataclass(frozen=True)
class Crops:
    """`photographs`: [photograph, colour, row, column], between -1 and 1."""

    photographs: Callable[[], torch.Tensor]
    side: int  # pixels

    validated: ClassVar = 2048  # crops

    def draw(self, size: int, generator: torch.Generator) -> Batch:
        photographs = self.photographs()
        count, _, height, width = photographs.shape

        def drawn(below: int) -> torch.Tensor:
            return torch.randint(below, (size,), generator=generator)

        photograph, band = drawn(count), drawn(BANDS)
        row = band * (height // BANDS) + drawn(height // BANDS - self.side + 1)
        column = drawn(width - self.side + 1)
        inside = torch.arange(self.side)
        rows, columns = row[:, None] + inside, column[:, None] + inside
        crops = photographs[photograph[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return crops.permute(0, 3, 1, 2).contiguous(), photograph * BANDS + band

    def held_out(self) -> Batch:
        """For validation: always the same."""
        return _held_out(self)


@dataclass(frozen=True)
class Noisy:
    """To be found is the noise that was added to each crop, as by the denoising networks of Zhang
    et al. 2017 (arXiv 1608.03981)."""

    crops: Crops
    noise: float  # standard deviation

    validated: ClassVar = 512  # crops: each of their pixels counts

    def draw(self, size: int, generator: torch.Generator) -> Batch:
        clean, _ = self.crops.draw(size, generator)
        noise = self.noise * torch.randn(clean.shape, generator=generator)
        return clean + noise, noise

    def held_out(self) -> Batch:
        """For validation: always the same."""
        return _held_out(self)


@dataclass(frozen=True)
class Grey:
    """To be found is the colour of each pixel of crops that are seen in grey, as by the colouring
    networks of Zhang et al. 2016 (arXiv 1603.08511)."""

    crops: Crops

    validated: ClassVar = 512  # crops: each of their pixels counts

    def draw(self, size: int, generator: torch.Generator) -> Batch:
        coloured, _ = self.crops.draw(size, generator)
        red, green, blue = coloured.unbind(1)
        shades = _shade(red - green) * SHADES + _shade(blue - green)
        return coloured.mean(1, keepdim=True), shades

    def held_out(self) -> Batch:
        """For validation: always the same."""
        return _held_out(self)


def _shade(difference: torch.Tensor) -> torch.Tensor:
    """Most lie within a quarter of the whole range, half to each side."""
    return ((difference + 0.5) * SHADES).clamp(0, SHADES - 1).long()


@functools.cache
def _held_out(source: Crops | Noisy | Grey) -> Batch:
    return source.draw(source.validated, torch.Generator().manual_seed(0))


@functools.cache
def two() -> torch.Tensor:
    """Those of scikit-learn."""
    from sklearn import datasets

    pixels = torch.stack([torch.tensor(image) for image in datasets.load_sample_images().images])
    return _scaled(pixels)


@functools.cache
def ten() -> torch.Tensor:
    """Those of scikit-learn and of scikit-image; the middle of each."""
    package = importlib.util.find_spec("skimage")
    if package is None or package.origin is None:
        raise RuntimeError("these photographs come with scikit-image: pip install scikit-image")
    folder = Path(package.origin).parent / "data"
    pixels = [torch.tensor(np.asarray(Image.open(folder / name))) for name in _SHIPPED]
    shipped = _scaled(torch.stack([_middle(image) for image in pixels]))
    height, width = (two().shape[i] for i in (2, 3))
    top, left = (height - _ROWS) // 2, (width - _COLUMNS) // 2
    return torch.cat([shipped, two()[:, :, top : top + _ROWS, left : left + _COLUMNS]])


def _middle(image: torch.Tensor) -> torch.Tensor:
    """Of an image [row, column, colour]; every colour, no transparency."""
    top, left = (image.shape[0] - _ROWS) // 2, (image.shape[1] - _COLUMNS) // 2
    return image[top : top + _ROWS, left : left + _COLUMNS, :3]


def _scaled(pixels: torch.Tensor) -> torch.Tensor:
    return pixels.permute(0, 3, 1, 2).float() / 128.0 - 1.0
