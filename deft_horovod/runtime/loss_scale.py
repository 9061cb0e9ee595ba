"""Loss scales: an update that comes late is unscaled with the scale that its gradients were made
with, not with the one of the step at which it is applied.

GradScaler tells an optimizer its scale and whether it found infinities, if the optimizer says that
it takes care of scaling itself. While updates come late, ours says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import horovod.torch as stock
import torch

from deft_horovod.errors import NotSupportedError, explain
from deft_horovod.runtime.planned_reducer import PlannedReducer

if TYPE_CHECKING:
    from deft_horovod import _C as native

_KEPT_STEPS: Final = 4096  # longer than any generation lives


class LossScales:
    """The scale of each step's loss, by the step of the session."""

    def __init__(self) -> None:
        self.asked = False  # a scaler is at work, whether updates come late or not
        self._of_step: dict[int, float] = {}
        self._shown: torch.Tensor | None = None

    @property
    def used(self) -> bool:
        """Whether a scaler has told a scale."""
        return bool(self._of_step)

    def note(self, step: int, scale: torch.Tensor | float | None) -> None:
        """The scaler has told the scale of the step that has just ended."""
        if scale is None:
            raise NotSupportedError(
                explain(
                    "scaler.unscale_() was called while updates come late",
                    rank=stock.rank(),
                    step=step,
                    observed="gradients unscaled with another step's scale",
                    expected="scaler.step(optimizer) alone, which unscales as well",
                    action="leave unscale_() out, or set max_delay=0 and max_merge=1",
                )
            )
        self._of_step[step] = float(scale)
        self._of_step.pop(step - _KEPT_STEPS, None)

    def unscale_boundary(self, reducer: PlannedReducer, scale: torch.Tensor | None) -> None:
        """The scaler has looked at ``p.grad`` and tells the scale of the step that has ended."""
        self.note(reducer.session.step - 1, scale)
        reducer.dropped += self.unscale(reducer, reducer.boundary)

    def show(self, reducer: PlannedReducer) -> None:
        """A scaler insists on seeing a gradient, also at boundaries where nothing is due."""
        first = reducer.members[0].tensor
        if not reducer.boundary and first.grad is None:
            first.grad = torch.zeros_like(first)
            self._shown = first

    def hide(self) -> None:
        """What was only shown must not reach the optimizer."""
        if self._shown is not None:
            self._shown.grad = None
            self._shown = None

    def unscale(self, reducer: PlannedReducer, dues: Iterable[native.Due]) -> int:
        """Divides what these generations left in ``p.grad``. One that mixes scales is dropped, as
        is one with infinities; returns how many were."""
        dropped = 0
        done: set[int] = set()
        for due in dues:
            scales = {self._of_step.get(s, 1.0) for s in range(due.first_step, due.last_step + 1)}
            slots = sorted(reducer.members_of([due]) - done)
            done.update(slots)
            tensors = [reducer.members[slot].tensor for slot in slots]
            gradients = [t.grad for t in tensors if t.grad is not None]
            if len(scales) > 1 or not all(bool(g.isfinite().all()) for g in gradients):
                dropped += 1
                for tensor in tensors:
                    tensor.grad = None
            elif gradients and scales != {1.0}:
                torch._foreach_div_(gradients, scales.pop())
        return dropped

    def to_state(self) -> tuple[tuple[int, float], ...]:
        """For a checkpoint."""
        return tuple(self._of_step.items())

    def restore(self, state: Iterable[tuple[int, float]]) -> None:
        """From a checkpoint."""
        self._of_step = dict(state)
