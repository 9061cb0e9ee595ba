"""Hooks of ours on modules of the user's, of which copies of the module know nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

_Register = Callable[[Callable[..., None]], RemovableHandle]


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


def before_loading(module: nn.Module, hook: Callable[..., None]) -> RemovableHandle:
    """The hook is called before a state dict is loaded, with arguments that depend on the version
    of torch."""
    names = "register_load_state_dict_pre_hook", "_register_load_state_dict_pre_hook"
    return _registered(module, hook, names)


def after_saving(module: nn.Module, hook: Callable[..., None]) -> RemovableHandle:
    """The hook is called with the module, a state dict that was made, and its prefix."""
    names = "register_state_dict_post_hook", "_register_state_dict_hook"
    return _registered(module, hook, names)


def _registered(
    module: nn.Module, hook: Callable[..., None], names: Iterable[str]
) -> RemovableHandle:
    """By the first name that there is: torch 2.4 has the private ones only."""
    register: _Register = next(getattr(module, n) for n in names if hasattr(module, n))
    return register(hook)


def _nothing(*_: Any) -> None:
    """What the hooks of a copy do."""
