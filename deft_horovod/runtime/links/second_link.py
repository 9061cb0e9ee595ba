"""The second link: a path of its own beside Horovod's, over torch.distributed's Gloo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deft_horovod.runtime.links.rendezvous import STEP_SHARE, Purpose, Rendezvous
from deft_horovod.runtime.links.torch_link import link_over
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.reduction import Reduction

if TYPE_CHECKING:
    from deft_horovod import _C as native

_PURPOSE: Final = Purpose("the second link", "leave second_interface (DEFT_SECOND_INTERFACE) empty")


def open_second_link(
    reduction: Reduction, interface: str, deadline_s: float, agreement: Agreement
) -> native.C10dLink:
    """A link that reduces as the one through Horovod does. All ranks of the process set call it.

    Each call makes a new one with connections of its own; dropping it closes them.

    Raises:
        DeftError: as :meth:`Rendezvous.group` says.
    """
    place = Rendezvous(reduction.process_set, interface, _PURPOSE, agreement)
    group = place.group(deadline_s, STEP_SHARE * deadline_s)
    return link_over(group, f"the second link (Gloo on {interface})", reduction)
