"""Gates: a parameter is updated just before its first use in the next forward, not at the boundary.

The waiting moves from the end of backward into the forward, layer by layer, where the computation
of earlier layers hides it. Nothing is stale: every use sees the updated value. Between the step and
the next forward, torch announces each operation on one of them (an average of weights, say) or on
its gradient, and then all gates open. They also open before a fork, since messages arrive in this
process only.
"""

from __future__ import annotations

import functools
import logging
import os
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from deft_horovod.peers import stock
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.measure.module_hook import before_loading
from deft_horovod.runtime.reduce.plain_torch import plain_torch
from deft_horovod.runtime.reduce.planned import PlannedReducer
from deft_horovod.runtime.reduce.updates import (
    Options,
    faster,
    own_gradients_kept,
    update_only,
)

if TYPE_CHECKING:
    from deft_horovod.runtime.measure.observer import Observer

_LOG: Final = logging.getLogger("deft_horovod")


class Hook:
    """Sits on a module of the user's. A copy of the module (averaged weights, a pickled model) has
    no gates, so the copy of a hook does nothing; but what is held goes into the copy first."""

    def __init__(
        self,
        act: Callable[[], None] | None = None,
        before_copy: Callable[[dict[int, Any]], None] | None = None,
    ) -> None:
        self._act = act
        self._before_copy = before_copy

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def __call__(self, *_: Any) -> None:
        if self._act is not None:
            self._act()

    def __deepcopy__(self, memo: dict[int, Any]) -> Hook:
        if self._before_copy is not None:
            self._before_copy(memo)
        return Hook()

    def __reduce__(self) -> tuple[type[Hook], tuple[()]]:
        if self._before_copy is not None:
            self._before_copy({})
        return Hook, ()


def gates_of(
    inner: torch.optim.Optimizer, reducer: PlannedReducer, observer: Observer
) -> Gates | None:
    """Those of the plan; None: it has none, or there is no forward to hook into, and everything is
    waited for at the boundary."""
    if not observer.roots or not any(g.gated for g in reducer.plan.generations):
        return None
    return Gates(inner, reducer, observer.gates(reducer.members), observer.roots)


class Gates:
    """Holds back generations and applies each at its gate."""

    def __init__(
        self,
        inner: torch.optim.Optimizer,
        reducer: PlannedReducer,
        gate_modules: Sequence[nn.Module | None],
        roots: Iterable[nn.Module],
    ) -> None:
        self._inner = inner
        self._reducer = reducer
        self._held: list[native.Due] = []
        self._parts: dict[int, int] = {}  # slots not applied yet -> generations still missing
        self._shown: dict[int, torch.Tensor] = {}  # p.grad of these, until it is whole
        self._options: Options = []
        self._gave_up = False  # waiting failed in this forward; its end must not wait once more
        self._failure: BaseException | None = None  # of opening for an operation outside of forward
        self._pid = os.getpid()
        this = weakref.WeakMethod(self._on_use)
        self._uses = native.MemoryWatch(lambda: (on_use := this()) and on_use())
        self._inside = 0  # forwards of roots that have not returned
        self._ends: set[nn.Module] = set()  # others whose forward has been one of its own
        self._handles: list[RemovableHandle] = []
        by_module: dict[nn.Module, list[int]] = defaultdict(list)
        for slot, module in enumerate(gate_modules):
            if module is not None:
                by_module[module].append(slot)
        for module, slots in by_module.items():
            before_use = self._hook(functools.partial(self._before_use, module, slots))
            self._handles.append(module.register_forward_pre_hook(before_use))
        for root in roots:
            before = root.register_forward_pre_hook(self._hook(self._enter), prepend=True)
            after = root.register_forward_hook(self._hook(self._after_forward), always_call=True)
            saving = root.register_state_dict_pre_hook(self._hook(self.open_all))
            loading = before_loading(root, self._hook(self._before_loading))
            self._handles += [before, after, saving, loading]

    def _hook(self, act: Callable[[], None]) -> Hook:
        return Hook(act, self._before_copy)

    def _before_copy(self, memo: dict[int, Any]) -> None:
        """A module is being copied; parameters that it copied already are in the memo."""
        late = [self._reducer.members[s].tensor for s in self._reducer.members_of(self._held)]
        self.open_all()
        with torch.no_grad():
            for tensor in late:
                if id(tensor) in memo:
                    memo[id(tensor)].copy_(tensor)

    def hold(self, dues: Sequence[native.Due], options: Options) -> None:
        """A step has ended; these generations are still on their way."""
        self._held = list(dues)
        self._options = options
        self._parts = defaultdict(int)
        for due in dues:
            for slot in self._reducer.members_of([due]):
                self._parts[slot] += 1

    def forget_gradients(self, *, to_zero: bool) -> None:
        """The user clears them, which is no reason to wait for their averages."""
        if not self._shown:
            return
        watching = self._uses.watching
        self._uses.end()
        for slot in self._untouched():
            tensor = self._reducer.members[slot].tensor
            tensor.grad = torch.zeros_like(tensor) if to_zero else None
        self._shown.clear()
        if watching:
            self._watch_uses()

    def _untouched(self) -> set[int]:
        """The slots whose ``p.grad`` is still what step() has left there."""
        members = self._reducer.members
        return {slot for slot, shown in self._shown.items() if members[slot].tensor.grad is shown}

    def watch(self) -> None:
        """The updates of the step are done. From here to the next forward ``p.grad`` is where the
        averages arrive, and any operation on what is held opens the gates first."""
        if self._held:
            self._reducer.session.show(self._held)
            gradients = {slot: self._reducer.members[slot].tensor.grad for slot in self._parts}
            self._shown = {slot: g for slot, g in gradients.items() if g is not None}
            self._watch_uses()

    def _watch_uses(self) -> None:
        parameters = [self._reducer.members[slot].tensor for slot in self._parts]
        self._uses.begin([*parameters, *self._shown.values()])

    def open(self, slots: Iterable[int]) -> None:
        """Waits for everything that these parameters need and updates them."""
        wanted = {slot for slot in slots if slot in self._parts}
        if not wanted:
            return
        needed = [due for due in self._held if wanted & self._reducer.members_of([due])]
        self._apply(needed)

    def open_all(self) -> None:
        """Applies whatever is held."""
        self._apply(self._held)

    def close(self) -> None:
        """Removes the hooks."""
        self._uses.end()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _apply(self, dues: Sequence[native.Due]) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        if not dues or os.getpid() != self._pid:  # in a child nothing arrives
            return
        self._uses.end()
        taken = list(dues)
        # Also where a parameter has parts in messages that are still on their way.
        touched = self._reducer.members_of(taken) - self._untouched()
        theirs = [self._reducer.members[slot].tensor for slot in touched]
        with plain_torch(), own_gradients_kept(theirs):
            self._reducer.take(taken)
            whole = {id(tensor) for tensor in self._close(taken)}
            for rate, tensors in self._reducer.tensors_by_rate(taken).items():
                mine = [tensor for tensor in tensors if id(tensor) in whole]
                update_only(self._inner, mine, faster(self._options, rate))

    def _close(self, taken: Sequence[native.Due]) -> list[torch.Tensor]:
        """These are not held any more; returns the parameters of which nothing is missing now."""
        self._held = [due for due in self._held if not any(due is other for other in taken)]
        whole = []
        for due in taken:
            for slot in self._reducer.members_of([due]):
                self._parts[slot] -= 1
                if self._parts[slot] == 0:
                    del self._parts[slot]
                    # A sparse gradient has come the stock way, and step() has applied it.
                    shown = self._shown.pop(slot, None)
                    if shown is None or not shown.is_sparse:
                        whole.append(self._reducer.members[slot].tensor)
        return whole

    def _on_use(self) -> None:
        try:
            self.open_all()
        except BaseException as error:  # noqa: BLE001  torch lets none pass; the next gate raises it
            _LOG.exception("deft_horovod: a parameter is used without its last update")
            self._failure = error

    def _enter(self) -> None:
        self._uses.end()
        self._inside += 1

    def _before_use(self, module: nn.Module, slots: Sequence[int]) -> None:
        if self._held and not self._inside and module not in self._ends:
            # A part of the model is called by itself, which no root would notice.
            self._ends.add(module)
            after = self._hook(self._after_part)
            self._handles.append(module.register_forward_hook(after, always_call=True))
        try:
            self.open(slots)
        except BaseException:
            self._gave_up = True
            raise

    def _after_part(self) -> None:
        if not self._inside:
            self._end_forward()

    def _after_forward(self) -> None:
        self._inside -= 1
        self._end_forward()

    def _end_forward(self) -> None:
        gave_up, self._gave_up = self._gave_up, False
        if not gave_up:
            self.open_all()

    def _before_loading(self) -> None:
        # Applied later, updates of the old parameters would change the new ones. After a failure
        # of Horovod a checkpoint is loaded to recover: what is held is void then.
        try:
            self.open_all()
        except stock.HorovodInternalError:
            self._held = []
            self._parts = {}
            self._shown = {}
