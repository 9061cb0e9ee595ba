"""Times the calls of chosen modules in training forwards.

Only these modules get hooks: a hook for all modules would make each call of each of them slower.
Not timed are calls without gradients (an evaluation), calls in backward (a checkpoint computes its
forward again), calls from other threads, and whatever happens inside a compiled module.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from deft_horovod.runtime.measure.module_hook import ModuleHook
from deft_horovod.runtime.measure.timestamps import Clock, Moment

_NOT_TIMED: Final = -1


def in_backward() -> bool:
    """Whether autograd is running on this thread."""
    return bool(torch._C._current_graph_task_id() != -1)  # noqa: SLF001


class Calls(NamedTuple):
    """The timed calls of a step, in the order in which they began; an entry of each list."""

    modules: list[int]  # index among the timed modules
    entered: list[Moment]
    left: list[Moment]  # None: it did not return
    outer: list[int]  # the timed call around it; -1: none
    evaluated: bool  # the modules were also used without gradients


class ModuleTimer:
    """Hooks on modules, to be taken off with :meth:`detach`."""

    def __init__(self, modules: Sequence[nn.Module], clock: Clock) -> None:
        self.modules = tuple(modules)
        self._clock = clock
        self._thread = threading.get_ident()
        self._open: list[int] = []  # calls that have not returned, by their place
        self._innermost = _NOT_TIMED
        self._calls = Calls([], [], [], [], False)
        self._evaluated = False
        self._handles: list[RemovableHandle] = []
        leave = ModuleHook(self._leave)
        for index, module in enumerate(self.modules):
            enter = ModuleHook(self._enter, index)
            self._handles += [
                module.register_forward_pre_hook(enter, prepend=True),
                module.register_forward_hook(leave, always_call=True),
            ]

    def take(self) -> Calls:
        """The calls since the last time this was asked; the next step begins."""
        taken = self._calls._replace(evaluated=self._evaluated)
        self._calls = Calls([], [], [], [], False)
        self._open.clear()
        self._innermost = _NOT_TIMED
        self._evaluated = False
        return taken

    def detach(self) -> None:
        """Removes all hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _enter(self, index: int, *_: Any) -> None:
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        self._open.append(self._innermost)
        # Inside a timed call everything is part of the forward, also what needs no gradients.
        if self._innermost == _NOT_TIMED and (in_backward() or not torch.is_grad_enabled()):
            self._evaluated |= not in_backward()
            return
        calls = self._calls
        calls.outer.append(self._innermost)
        self._innermost = len(calls.modules)
        calls.modules.append(index)
        calls.left.append(None)
        calls.entered.append(self._clock.now())

    def _leave(self, *_: Any) -> None:
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        if not self._open:
            return  # it was entered before a step ended
        if self._innermost != _NOT_TIMED:
            self._calls.left[self._innermost] = self._clock.now()
        self._innermost = self._open.pop()
