"""What our optimizer has beyond Horovod's, for a Horovod optimizer with nothing of ours behind it
(``DEFT_DISABLE``): a script that calls `flush()` runs as well without us."""

from __future__ import annotations

from typing import Any, Final

import torch


def _nothing(_: Any, *__: object) -> None:
    """Nothing is held."""


_SURFACE: Final[dict[str, Any]] = {
    "plan": None,
    "profile": None,
    "flush": _nothing,
    "stats": lambda _: {"policy": "none"},
    "__enter__": lambda self: self,
    "__exit__": _nothing,
}


def with_our_surface(made: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Horovod makes a class for each optimizer, and its methods look for that very class, so
    nothing can inherit from it."""
    for name, value in _SURFACE.items():
        setattr(type(made), name, value)
    return made
