"""A hook of ours on a module of the user's, of which copies of the module know nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn


class ModuleHook:
    """Calls `act` with the module. In a copy of the module (averaged weights, a pickled model) it
    does nothing."""

    def __init__(self, act: Callable[[nn.Module], None] | None = None) -> None:
        self._act = act

    def __call__(self, module: nn.Module, *_: Any) -> None:
        if self._act is not None:
            self._act(module)

    def __deepcopy__(self, memo: dict[int, Any]) -> ModuleHook:
        return ModuleHook()

    def __reduce__(self) -> tuple[type[ModuleHook], tuple[()]]:
        return ModuleHook, ()
