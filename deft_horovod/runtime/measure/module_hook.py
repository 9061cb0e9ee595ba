"""A hook of ours on a module of the user's, of which copies of the module know nothing."""

from __future__ import annotations

import functools
from typing import Any


class ModuleHook(functools.partial[None]):
    """Calls the function that it was made of. In a copy of the module (averaged weights, a pickled
    model) it does nothing.

    It is a partial() and no class with a __call__ of its own, as that would be one more Python
    function to run for each call of the module.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> ModuleHook:
        return ModuleHook(_nothing)

    def __reduce__(self) -> tuple[type[ModuleHook], tuple[Any]]:
        return ModuleHook, (_nothing,)


def _nothing(*_: Any) -> None:
    """What the hooks of a copy do."""
