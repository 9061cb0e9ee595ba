"""``import deft_horovod.torch as hvd``: all of ``horovod.torch``, with our DistributedOptimizer.

Whatever is not named below is Horovod's own object.
"""

from __future__ import annotations

from typing import Any

from deft_horovod.errors import ConfigError, explain
from deft_horovod.peers import OVER_TORCH
from deft_horovod.peers import stock as _stock

if OVER_TORCH:
    raise ConfigError(
        explain(
            "deft_horovod.torch was imported after deft_horovod.distributed",
            expected="one of them: a process trains over Horovod or over torch.distributed",
            action="remove the other import",
        )
    )

from deft_horovod.runtime.wrapper import DistributedOptimizer as OptimizerType
from deft_horovod.torch import elastic as elastic
from deft_horovod.torch.functions import (
    broadcast_optimizer_state as broadcast_optimizer_state,
)
from deft_horovod.torch.functions import init as init
from deft_horovod.torch.functions import join as join
from deft_horovod.torch.functions import shutdown as shutdown
from deft_horovod.torch.optimizer import DistributedOptimizer as DistributedOptimizer

__all__ = [*(name for name in dir(_stock) if not name.startswith("_")), "OptimizerType"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    return getattr(_stock, name)


def __dir__() -> list[str]:
    return sorted(__all__)
