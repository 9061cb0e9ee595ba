"""Budget: how much of the loss late updates may be expected to cost."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from deft_horovod.config import Config

DEFAULT_BUDGET: Final = 0.02  # of the loss; see docs/internals/preserver.md
# Users of `auto` do not want to think about accuracy; users who name a policy have.
_BUDGETS: Final = MappingProxyType({"auto": DEFAULT_BUDGET})


def budget(policy: str, config: Config) -> float | None:
    """What its late updates may be expected to cost, as a share of the loss; None: no limit."""
    if config.accuracy_budget is not None:
        return config.accuracy_budget
    return _BUDGETS.get(policy)
