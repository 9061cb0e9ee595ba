"""Gates: a parameter is updated just before its first use in the next forward, not at the boundary.

The waiting moves from the end of backward into the forward, layer by layer, where the computation
of earlier layers hides it. Nothing is stale: every use sees the updated value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import horovod.torch as stock
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from deft_horovod.runtime.partial_update import Options, update_only
from deft_horovod.runtime.planned_reducer import PlannedReducer

if TYPE_CHECKING:
    from deft_horovod import _C as native


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
        self._options: Options = []
        self._handles: list[RemovableHandle] = []
        by_module: dict[nn.Module, list[int]] = defaultdict(list)
        for slot, module in enumerate(gate_modules):
            if module is not None:
                by_module[module].append(slot)
        for module, slots in by_module.items():
            self._handles.append(module.register_forward_pre_hook(self._opener(slots)))
        for root in roots:
            self._handles.append(root.register_forward_hook(self._open_all, always_call=True))
            self._handles.append(root.register_state_dict_pre_hook(self._before_saving))
            self._handles.append(root.register_load_state_dict_pre_hook(self._before_loading))

    def hold(self, dues: Sequence[native.Due], options: Options) -> None:
        """A step has ended; these generations are still on their way."""
        self._held = list(dues)
        self._options = options
        self._parts = defaultdict(int)
        for due in dues:
            for slot in self._reducer.members_of([due]):
                self._parts[slot] += 1

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
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _apply(self, dues: Sequence[native.Due]) -> None:
        if not dues:
            return
        taken = list(dues)
        self._held = [due for due in self._held if not any(due is other for other in taken)]
        whole = set()
        touched = self._reducer.members_of(taken)
        for due in taken:
            for slot in self._reducer.members_of([due]):
                self._parts[slot] -= 1
                if self._parts[slot] == 0:
                    del self._parts[slot]
                    whole.add(slot)
        # What p.grad holds now belongs to the user: it comes back, also where a parameter has
        # parts in messages that are still on their way.
        kept = {slot: self._reducer.members[slot].tensor.grad for slot in touched}
        for slot in touched:
            self._reducer.members[slot].tensor.grad = None
        self._reducer.take(taken)
        update_only(
            self._inner, [self._reducer.members[slot].tensor for slot in whole], self._options
        )
        for slot, gradient in kept.items():
            self._reducer.members[slot].tensor.grad = gradient

    def _opener(self, slots: Sequence[int]) -> Any:
        @torch.compiler.disable  # type: ignore[untyped-decorator]
        def before_use(_: nn.Module, __: Any) -> None:
            self.open(slots)

        return before_use

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _open_all(self, _: nn.Module, __: Any, ___: Any) -> None:
        self.open_all()

    def _before_saving(self, *_: Any) -> None:
        self.open_all()

    def _before_loading(self, *_: Any) -> None:
        # Applied later, updates of the old parameters would change the new ones. After a failure
        # of Horovod a checkpoint is loaded to recover: what is held is void then.
        try:
            self.open_all()
        except stock.HorovodInternalError:
            self._held = []
            self._parts = {}
