"""Scripts that train with ``DistributedDataParallel`` get ours, without a changed line."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch
from torch.nn.parallel import distributed as home

from deft_horovod.config import Config
from deft_horovod.distributed.stand_in import StandIn
from deft_horovod.distributed.takeover import Takeover, around

_TORCH: Final[Any] = torch
_NAME: Final = "DistributedDataParallel"


def substitute(settings: Config) -> None:
    """From now on, in this process. What is meant only by scripts of torch stays as it is."""
    takeover = Takeover(settings)
    _TORCH.autograd.backward = around(torch.autograd.backward, takeover)
    _tell_of_parameters(takeover)
    # By the name and place of torch's, which pickle looks up.
    kind = type(_NAME, (StandIn,), {"takeover": takeover, "__module__": home.__name__})
    for place in (torch.nn.parallel, home):
        setattr(place, _NAME, kind)


def _tell_of_parameters(takeover: Takeover) -> None:
    """Of each optimizer that is made, or is given more of them."""
    add = torch.optim.Optimizer.add_param_group

    @functools.wraps(add)
    def add_and_tell(optimizer: torch.optim.Optimizer, param_group: dict[str, Any]) -> None:
        add(optimizer, param_group)
        takeover.add_optimizer(optimizer)

    _TORCH.optim.Optimizer.add_param_group = add_and_tell
