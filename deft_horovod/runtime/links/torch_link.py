"""The link of a job over torch.distributed: a process group that carries gradients alone.

It is made by hand, from the store of the job: what torch makes itself it also keeps, and after a
failure connections have to close, which is how the others learn of it.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import torch
import torch.distributed

from deft_horovod.peers import stock
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.planned import staged

if TYPE_CHECKING:
    from deft_horovod import _C

# Torch annotates only part of what is there.
_DISTRIBUTED: Final[Any] = torch.distributed
# Of the deadline. A rank that is late is told by the wait for its bucket, which has the deadline
# and names it. The group's own limit comes after that.
MESSAGE_SHARE: Final = 2.0
_SETTLE_S: Final = 5.0


def open_torch_link(
    reduction: Reduction, devices: Iterable[torch.device], name: str, deadline_s: float
) -> _C.Link:
    """A link that averages as Horovod does, bit for bit between two ranks.

    All ranks call it together, with a name that was never used before.
    """
    cuda = [device for device in devices if device.type == "cuda"]
    nccl = bool(cuda) and stock.nccl_built()
    limit = timedelta(seconds=MESSAGE_SHARE * deadline_s)
    kind = _DISTRIBUTED.ProcessGroupNCCL if nccl else _DISTRIBUTED.ProcessGroupGloo
    link = link_over(
        kind(stock.own_store(name), stock.rank(), stock.size(), limit),
        f"the link over torch.distributed ({'NCCL' if nccl else 'Gloo'})",
        reduction,
    )
    return link if nccl else staged(link, cuda)


def link_over(group: Any, path: str, reduction: Reduction) -> native.C10dLink:
    """A link over a group that the caller forgets; `path` stands in what it says of failures."""
    link = native.C10dLink(
        group,
        path,
        sorted(reduction.process_set.ranks),
        average=reduction.op == stock.Average,
        prescale=reduction.prescale,
        postscale=reduction.postscale,
    )
    settle_at_exit(link)
    return link


def settle_at_exit(link: _C.C10dLink | _C.MeshLink) -> None:
    """The link's threads must not wake up in a process that is being torn down."""
    atexit.register(_settle, weakref.ref(link))


def _settle(reference: Callable[[], _C.C10dLink | _C.MeshLink | None]) -> None:
    link = reference()
    if link is not None:
        link.wait_idle(_SETTLE_S)
