"""``import deft_horovod.torch as hvd``: all of ``horovod.torch``, with our DistributedOptimizer.

Whatever is not named below is Horovod's own object.
"""

from __future__ import annotations

from typing import Any

import horovod.torch as _stock

from deft_horovod.runtime.optimizer import DistributedOptimizer as OptimizerType
from deft_horovod.torch import elastic
from deft_horovod.torch.functions import broadcast_optimizer_state, init, join, shutdown
from deft_horovod.torch.optimizer import DistributedOptimizer

__all__ = sorted(
    {
        *(name for name in vars(_stock) if not name.startswith("_")),
        "OptimizerType",
        "elastic",
    }
)


def __getattr__(name: str) -> Any:
    return getattr(_stock, name)


def __dir__() -> list[str]:
    return __all__
