"""Metrics for TensorBoard."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deft_horovod.errors import ConfigError, explain
from deft_horovod.runtime.metrics.numbers import numbers


class TensorBoard:
    """A folder of event files, written by torch's own writer."""

    def __init__(self, folder: Path) -> None:
        if importlib.util.find_spec("tensorboard") is None:
            raise ConfigError(
                explain(
                    "metrics for TensorBoard need the package tensorboard, which is not installed",
                    observed=f"DEFT_METRICS={folder}",
                    action="pip install tensorboard, or name a file that ends with .csv, .jsonl or "
                    ".prom",
                )
            )
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def write(self, stats: Mapping[str, Any], time_s: float) -> None:
        for number in numbers(stats):
            self._writer.add_scalar(
                f"deft/{number.name}", number.value, int(stats["steps"]), walltime=time_s
            )
        self._writer.flush()
