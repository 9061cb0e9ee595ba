"""The other ranks, by the names of ``horovod.torch``: those of Horovod, or of torch.distributed.

A process trains over one of them. It is torch.distributed where ``deft_horovod.distributed`` was
imported first. Everything that runs in a rank takes Horovod from here: ``from deft_horovod.peers
import stock``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any, Final

from deft_horovod.comparison import DDP, STOCK
from deft_horovod.errors import BuildMismatchError, explain

OVER_TORCH: Final = "deft_horovod.distributed" in sys.modules
# What gains are told against: Horovod's own calls, or the buckets of DistributedDataParallel.
BASELINE: Final = DDP if OVER_TORCH else STOCK
QUEUE: Final = "the queue of torch.distributed" if OVER_TORCH else "Horovod's queue"


def _import_horovod() -> str:
    """Loads Horovod's library for all, as symbols of our extension resolve there. Its version, ""
    where there is none."""
    if importlib.util.find_spec("horovod") is not None:
        importlib.import_module("horovod.torch")
        return str(importlib.import_module("horovod").__version__)
    if OVER_TORCH:
        return ""
    raise BuildMismatchError(
        explain(
            "Horovod is not installed",
            expected="Horovod for deft_horovod.torch; deft_horovod.distributed goes without",
            action="install Horovod and deft_horovod, in this order (docs/guide/installation.md); "
            "in jobs of torchrun import deft_horovod.distributed",
        )
    )


HOROVOD_VERSION: Final = _import_horovod()

stock: Any = importlib.import_module(
    "deft_horovod.peers.process_group" if OVER_TORCH else "horovod.torch"
)
