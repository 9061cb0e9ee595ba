"""When metrics are written, and by whom."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from deft_horovod.errors import ConfigError, explain
from deft_horovod.runtime.metrics.csv_file import CsvFile
from deft_horovod.runtime.metrics.json_lines import JsonLines
from deft_horovod.runtime.metrics.prometheus import PrometheusFile
from deft_horovod.runtime.metrics.tensorboard import TensorBoard

_LOG: Final = logging.getLogger("deft_horovod")


class Sink(Protocol):
    """Where metrics go: one file, or one folder of TensorBoard."""

    def write(self, stats: Mapping[str, Any], time_s: float) -> None:
        """`time_s`: since 1970. Raises OSError where nothing can be written."""


class Recorder:
    """Of one optimizer, on rank 0. Metrics never stop a training."""

    def __init__(self, sink: Sink, place: Path, every_steps: int) -> None:
        self._sink: Sink | None = sink
        self._place = place
        self._every_steps = every_steps
        self._steps = 0

    def step(self, stats: Callable[[], Mapping[str, Any]]) -> None:
        """A step has ended."""
        self._steps += 1
        if self._sink is None or self._steps % self._every_steps:
            return
        try:
            self._sink.write(stats(), time.time())
        except OSError as error:
            self._sink = None
            reason = error.strerror or error
            _LOG.warning("deft_horovod: no more metrics go to %s: %s", self._place, reason)


def recorder_to(place: str, every_steps: int, optimizer: int) -> Recorder:
    """`optimizer`: how many others of this process write metrics. They have files of their own."""
    path = Path(place).absolute()  # a script may change its folder later
    if optimizer:
        path = path.with_name(f"{path.stem}-{optimizer}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Recorder(_sink(path, optimizer), path, every_steps)
    except OSError as error:
        raise ConfigError(
            explain(
                f"metrics cannot be written to {path}",
                rank=0,
                observed=error.strerror or error,
                action="give DEFT_METRICS a place that rank 0 can write to",
            )
        ) from None


def _sink(path: Path, optimizer: int) -> Sink:
    if path.suffix == ".csv":
        return CsvFile(path)
    if path.suffix == ".jsonl":
        return JsonLines(path)
    if path.suffix == ".prom":
        return PrometheusFile(path, optimizer)
    return TensorBoard(path)
