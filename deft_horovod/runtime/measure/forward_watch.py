"""Watches forward stages to find out where each parameter is used first.

A gate has to open before the first use of its parameter. The optimizer knows parameters, not
modules, so modules are met where they pass: at torch's global hooks, during the first steps only.

A parameter's gate is the module that owns it, if that module is really called and nothing has used
the parameter before it; otherwise the outermost module around it.

A compiled module is one module: nothing is watched inside it. The global hooks are taken away while
it runs, as code that is compiled with them around would be compiled once more when they are gone.
A scripted module (torch.jit) takes no hooks of its own, so it is part of the module around it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from deft_horovod.runtime.measure.module_hook import ModuleHook
from deft_horovod.runtime.measure.module_timer import in_backward

_US: Final = 1e6
# torch.compile() says it to everybody who has global hooks; ours fire once.
_NOT_OURS: Final = r"Using `torch\.compile\(module\)` when there are global hooks"


class _UseWatch(TorchFunctionMode):
    """Sees every torch function and tells which parameters it was given."""

    def __init__(self, watch: ForwardWatch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        for item in (*args, *(kwargs or {}).values()):
            for tensor in item if isinstance(item, list | tuple) else (item,):
                if isinstance(tensor, nn.Parameter):
                    self._watch.on_use(tensor)
        return func(*args, **(kwargs or {}))


def _is_compiled(module: nn.Module) -> bool:
    """Whether it came from torch.compile(); asking torch._dynamo would import all of it."""
    return any(name == "_orig_mod" for name, _ in module.named_children())


def _is_unseen(module: nn.Module) -> bool:
    """Whether this call says nothing of the forward, or its module takes no hooks."""
    silent = torch.compiler.is_compiling() or in_backward()
    return silent or isinstance(module, torch.jit.ScriptModule)


class ForwardWatch:
    """First uses of a set of parameters, by index."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._index = {id(tensor): i for i, tensor in enumerate(tensors)}
        self._owners: dict[nn.Module, tuple[int, ...]] = {}
        self._first_use_us: list[float | None] = [None] * len(tensors)
        self._gates: list[nn.Module | None] = [None] * len(tensors)
        self._roots: list[nn.Module] = []
        self._depth = 0
        self._began_s = 0.0
        self._forward_us = 0.0
        self._mode: _UseWatch | None = None
        self._compiled: dict[nn.Module, RemovableHandle] = {}
        self._handles: list[RemovableHandle] = []
        warnings.filterwarnings("ignore", _NOT_OURS, UserWarning)
        self._silence = warnings.filters[0]
        self._watch_all()

    @property
    def first_use_us(self) -> tuple[float | None, ...]:
        """Since forward began; None: no module was seen around it."""
        return tuple(self._first_use_us)

    @property
    def forward_us(self) -> float:
        """The time from the outermost module's call to its return, the latest one seen."""
        return self._forward_us

    @property
    def gates(self) -> tuple[nn.Module | None, ...]:
        """The module whose call must wait for each parameter."""
        return tuple(self._gates)

    @property
    def owners(self) -> dict[nn.Module, tuple[int, ...]]:
        """The modules that were called and own parameters, in the order of their first calls."""
        return dict(self._owners)

    @property
    def roots(self) -> tuple[nn.Module, ...]:
        """The modules that were called from outside of any module and hold some of these."""
        return tuple(self._roots)

    def on_use(self, tensor: torch.Tensor) -> None:
        """A torch function takes this parameter: too late for a gate that was not met yet."""
        index = self._index.get(id(tensor))
        if index is not None and self._gates[index] is None and self._roots:
            self._gate_at_root(index)

    def stop(self) -> None:
        """Removes every hook; what was seen stays."""
        self._watch_none()
        for handle in self._compiled.values():
            handle.remove()
        self._compiled.clear()
        if self._silence in warnings.filters:
            warnings.filters.remove(self._silence)  # type: ignore[attr-defined]

    def _watch_all(self) -> None:
        self._handles = [
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        ]

    def _watch_none(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _now_us(self) -> float:
        return (time.perf_counter() - self._began_s) * _US

    def _look(self) -> None:
        if self._mode is None:
            self._mode = _UseWatch(self)
            self._mode.__enter__()  # type: ignore[no-untyped-call]

    def _look_away(self) -> None:
        if self._mode is not None:
            self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._mode = None

    def _gate_at_root(self, index: int) -> None:
        self._first_use_us[index] = 0.0
        self._gates[index] = self._roots[-1]

    def _enter(self, module: nn.Module, _: Any) -> None:
        if _is_unseen(module):
            return
        if self._depth == 0:
            if not torch.is_grad_enabled() or not self._is_root(module):
                return  # an evaluation says nothing about training
            self._began_s = time.perf_counter()
            self._look()
        self._depth += 1
        compiled = _is_compiled(module)
        if compiled:
            self._enter_compiled(module)
        owned = []
        for parameter in module.parameters(recurse=compiled):
            index = self._index.get(id(parameter))
            if index is None:
                continue
            owned.append(index)
            if self._gates[index] is None:
                self._first_use_us[index] = self._now_us()
                self._gates[index] = module
        if owned:
            self._owners[module] = tuple(owned)

    def _is_root(self, module: nn.Module) -> bool:
        """Not another model of the script, nor a loss."""
        if any(module is root for root in self._roots):
            return True
        found = any(id(parameter) in self._index for parameter in module.parameters())
        if found:
            self._roots.append(module)
        return found

    def _enter_compiled(self, module: nn.Module) -> None:
        self._look_away()  # Dynamo cannot trace through the mode
        self._watch_none()
        if module not in self._compiled:
            hook = ModuleHook(self._leave_compiled)
            self._compiled[module] = module.register_forward_hook(hook, always_call=True)

    def _leave_compiled(self, module: nn.Module, _: Any, __: Any) -> None:
        if self._handles:
            return  # it was called without gradients, or in backward
        self._watch_all()
        if self._depth > 1:
            self._look()
        self._leave(module, None, None)

    def _leave(self, module: nn.Module, _: Any, __: Any) -> None:
        if _is_unseen(module) or self._depth == 0:
            return
        self._depth -= 1
        if self._depth > 0:
            return
        self._look_away()
        self._forward_us = self._now_us()
        for parameter in module.parameters():
            index = self._index.get(id(parameter))
            if index is not None and self._gates[index] is None:
                self._gate_at_root(index)
