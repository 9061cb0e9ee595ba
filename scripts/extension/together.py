"""Several sources compiled as one file: reading the headers of torch and pybind11, and making what
their templates stand for, takes most of the time of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def together(sources: Sequence[Path], target: Path) -> Path:
    """A file that includes these. It is left alone where it does so already, so that it is not
    compiled again."""
    text = "".join(f'#include "{source}"\n' for source in sources)
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return target
