"""Times the calls of chosen modules in training forwards.

Only these modules get hooks: a hook for all modules would make each call of each of them slower.
Not timed are calls without gradients (an evaluation), calls in backward (a checkpoint computes its
forward again), calls from other threads, and whatever happens inside a compiled module.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from deft_horovod.runtime.module_hook import ModuleHook
from deft_horovod.runtime.moments import Clock, Moment


def in_backward() -> bool:
    """Whether autograd is running on this thread."""
    return bool(torch._C._current_graph_task_id() != -1)  # noqa: SLF001


class Call(NamedTuple):
    """One call of a module."""

    module: int  # index among the timed modules
    entered: Moment
    left: Moment
    outer: int  # the timed call around it, an index into the calls of the step; -1: none


class Calls(NamedTuple):
    """What a step called."""

    calls: tuple[Call, ...]
    evaluated: bool  # somebody also used the modules without gradients


class _Open(NamedTuple):
    place: int  # of its call in the step; -1: it is not timed
    entered: Moment | None


class ModuleTimer:
    """Hooks on modules, to be taken off with :meth:`detach`."""

    def __init__(self, modules: Sequence[nn.Module], clock: Clock) -> None:
        self.modules = tuple(modules)
        self._index = {module: i for i, module in enumerate(self.modules)}
        self._clock = clock
        self._thread = threading.get_ident()
        self._open: list[_Open] = []
        self._calls: list[Call | None] = []  # in the order in which they began
        self._evaluated = False
        self._handles: list[RemovableHandle] = []
        for module in self.modules:
            enter = module.register_forward_pre_hook(ModuleHook(self._enter), prepend=True)
            leave = module.register_forward_hook(ModuleHook(self._leave), always_call=True)
            self._handles += [enter, leave]

    def take(self) -> Calls:
        """The calls since the last time this was asked; the next step begins."""
        done = tuple(call for call in self._calls if call is not None)
        taken = Calls(done if len(done) == len(self._calls) else (), self._evaluated)
        self._open.clear()
        self._calls = []
        self._evaluated = False
        return taken

    def detach(self) -> None:
        """Removes all hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _enter(self, _: nn.Module) -> None:
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        if in_backward() or not torch.is_grad_enabled():
            if not self._open and not in_backward():
                self._evaluated = True
            self._open.append(_Open(-1, None))
            return
        self._open.append(_Open(len(self._calls), self._clock.now()))
        self._calls.append(None)

    def _leave(self, module: nn.Module) -> None:
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        if not self._open:
            return  # it was entered before a step ended
        opened = self._open.pop()
        if opened.entered is None:
            return
        left = self._clock.now()
        outer = next((o.place for o in reversed(self._open) if o.place >= 0), -1)
        self._calls[opened.place] = Call(self._index[module], opened.entered, left, outer)
