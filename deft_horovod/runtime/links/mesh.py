"""The mesh: connections from rank to rank, for messages in wire formats.

Horovod's own exchanges over Gloo leave the network idle for a third of the time
(docs/internals/encoded-link.md#the-mesh). Where there is no mesh, what is encoded travels by these.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import torch.distributed

from deft_horovod.config import Config
from deft_horovod.errors import DeftError
from deft_horovod.peers import stock
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.links.rendezvous import STEP_SHARE, Purpose, Rendezvous
from deft_horovod.runtime.links.torch_link import MESSAGE_SHARE, settle_at_exit
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.reduction import Reduction

if TYPE_CHECKING:
    from deft_horovod import _C

_LOG: Final = logging.getLogger("deft_horovod")
_DISTRIBUTED: Final[Any] = torch.distributed
# Horovod has connected over this interface a moment ago, and there is a way without a mesh.
_STEP_S: Final = 20.0
_PURPOSE: Final = Purpose("a mesh for wire formats", "set accuracy (DEFT_ACCURACY) to exact")


def open_mesh(
    reduction: Reduction, interface: str, deadline_s: float, agreement: Agreement
) -> _C.MeshLink:
    """A mesh over this interface. All ranks of the process set call it.

    Each call makes new connections; dropping it closes them.

    Raises:
        DeftError: as :meth:`Rendezvous.group` says.
    """
    place = Rendezvous(reduction.process_set, interface, _PURPOSE, agreement)
    group = place.group(deadline_s, min(STEP_SHARE * deadline_s, _STEP_S))
    return _over(group, f"the mesh (Gloo on {interface})")


def open_mesh_beside_horovod(
    reduction: Reduction, deadline_s: float, agreement: Agreement
) -> _C.MeshLink | None:
    """A mesh over the interface on which Horovod's Gloo has connected. None, on all ranks: it is
    not Gloo that carries Horovod's messages, or some rank cannot connect."""
    interface = Config.gloo_interface()
    if not all(agreement.collect(interface)):
        return None
    try:
        return open_mesh(reduction, interface, deadline_s, agreement)
    except DeftError as error:
        if agreement.deciding:
            _LOG.warning(
                "deft_horovod: messages in wire formats travel by Horovod's exchanges, which take "
                "longer, as there is no mesh: %s",
                error,
            )
        return None


def open_torch_mesh(name: str, deadline_s: float) -> _C.MeshLink:
    """A mesh of a job over torch.distributed.

    All ranks call it together, with a name that was never used before.
    """
    limit = timedelta(seconds=MESSAGE_SHARE * deadline_s)
    store = stock.own_store(name)
    group = _DISTRIBUTED.ProcessGroupGloo(store, stock.rank(), stock.size(), limit)
    return _over(group, "the mesh over torch.distributed (Gloo)")


def _over(group: Any, path: str) -> _C.MeshLink:
    mesh = native.MeshLink(group, path)
    settle_at_exit(mesh)
    return mesh
