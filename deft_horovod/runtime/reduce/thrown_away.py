"""Steps that the script throws away, as a GAN does in every turn of the other model.

A sum of several steps that such a step was added to has to be dropped as a whole. Where that
happens again and again nothing of a parameter would ever arrive, so sums are given up.
"""

from __future__ import annotations

import logging
from typing import Final

from deft_horovod.peers import stock
from deft_horovod.plan import Plan

_MOST: Final = 3  # a batch that is not finite now and then is no habit
_LOG: Final = logging.getLogger("deft_horovod")


class ThrownAway:
    """Counts those that cost a sum. All ranks throw away the same steps, so they count alike."""

    def __init__(self) -> None:
        self._counted = 0

    @property
    def sums(self) -> bool:
        """Whether several steps may still travel as one."""
        return self._counted < _MOST

    def one_more(self, plan: Plan | None) -> bool:
        """A step was thrown away under this plan. True if that calls for a plan without sums."""
        if plan is None or not self.sums or all(one.merged == 1 for one in plan.generations):
            return False
        self._counted += 1
        given_up = self._counted == _MOST
        if given_up and stock.rank() == 0:
            _LOG.warning(
                "deft_horovod: the script has thrown away %d steps whose gradients were part of a "
                "sum, and each sum was dropped with them; from now on no steps are summed",
                _MOST,
            )
        return given_up
