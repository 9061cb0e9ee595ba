"""Scripts that train with ``DistributedDataParallel`` get ours, without a changed line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch.nn.parallel import distributed as home
from torch.optim import lr_scheduler

from deft_horovod.config import Config
from deft_horovod.distributed.stand_in import StandIn
from deft_horovod.distributed.takeover import Takeover, around

_TORCH: Final[Any] = torch
_NAME: Final = "DistributedDataParallel"


def substitute(settings: Config) -> None:
    """From now on, in this process. What is meant only by scripts of torch stays as it is."""
    takeover = Takeover(settings)
    _TORCH.autograd.backward = around(torch.autograd.backward, takeover)
    _extend(torch.optim.Optimizer, "add_param_group", after=takeover.add_optimizer)
    # A scheduler keeps the step() of its optimizer, so it has to be ours by then.
    _extend(lr_scheduler.LRScheduler, "__init__", before=lambda _: takeover.take())
    # By the name and place of torch's, which pickle looks up.
    kind = type(_NAME, (StandIn,), {"takeover": takeover, "__module__": home.__name__})
    for place in (torch.nn.parallel, home):
        setattr(place, _NAME, kind)


def _nothing(_: Any) -> None:
    pass


def _extend(
    kind: type,
    name: str,
    before: Callable[[Any], None] = _nothing,
    after: Callable[[Any], None] = _nothing,
) -> None:
    method = getattr(kind, name)

    def extended(this: Any, *args: Any, **kwargs: Any) -> Any:
        before(this)
        result = method(this, *args, **kwargs)
        after(this)
        return result

    extended.__name__, extended.__doc__ = method.__name__, method.__doc__
    setattr(kind, name, extended)
