"""Metrics as a text file for Prometheus, which its node exporter collects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from deft_horovod.runtime.metrics.numbers import Number, numbers

_US: Final = 1e6
_TEXTS: Final = ("policy", "phase", "running", "plan")
_SINGULAR: Final = {"links": "link", "formats": "format"}


class PrometheusFile:
    """The latest values only; it is replaced as a whole, as collectors may read at any time."""

    def __init__(self, path: Path, optimizer: int) -> None:
        self._path = path
        self._optimizer = optimizer
        path.with_suffix(".part").touch()

    def write(self, stats: Mapping[str, Any], time_s: float) -> None:
        draft = self._path.with_suffix(".part")
        draft.write_text(exposition(stats, self._optimizer, time_s), encoding="utf-8")
        draft.replace(self._path)


def exposition(stats: Mapping[str, Any], optimizer: int, time_s: float) -> str:
    """In Prometheus' text format: base units, one block for each name."""
    blocks: dict[str, list[str]] = {}
    for number in numbers(stats):
        name, value = _metric(number)
        labels = {"optimizer": str(optimizer), number.of[0]: number.of[1]}
        blocks.setdefault(name, []).append(f"{name}{_braces(labels)} {value:.10g}")
    labels = {"optimizer": str(optimizer)}
    texts = {key: str(stats[key]) for key in _TEXTS if stats.get(key) is not None}
    blocks["deft_info"] = [f"deft_info{_braces({**labels, **texts})} 1"]
    blocks["deft_written_time_seconds"] = [
        f"deft_written_time_seconds{_braces(labels)} {time_s:.3f}"
    ]
    lines: Iterable[str] = (
        line for name, rows in blocks.items() for line in (f"# TYPE {name} gauge", *rows)
    )
    return "\n".join(lines) + "\n"


def _metric(number: Number) -> tuple[str, float]:
    """Its name and value in seconds or bytes."""
    words = [_SINGULAR.get(word, word) for word in number.path]
    name, value = "_".join(("deft", *words)), number.value
    if name.endswith("_us"):
        return name.removesuffix("_us") + "_seconds", value / _US
    return name, value


def _braces(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items() if key)
    return f"{{{inside}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
