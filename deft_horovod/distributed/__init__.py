"""For jobs of torch.distributed, such as those that ``torchrun`` starts. Horovod is not needed.

``from deft_horovod.distributed import DistributedOptimizer`` takes the place of torch's
``DistributedDataParallel``.
"""

from __future__ import annotations

from deft_horovod.errors import ConfigError, explain
from deft_horovod.peers import OVER_TORCH

if not OVER_TORCH:
    raise ConfigError(
        explain(
            "deft_horovod.distributed was imported after deft_horovod.torch",
            expected="one of them: a process trains over torch.distributed or over Horovod",
            action="remove the other import",
        )
    )

from deft_horovod.distributed.optimizer import DistributedOptimizer as DistributedOptimizer
from deft_horovod.runtime.wrapper import DistributedOptimizer as OptimizerType

__all__ = ["DistributedOptimizer", "OptimizerType"]
