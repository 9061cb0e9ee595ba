"""Loss scales: an update that comes late is unscaled with the scale that its gradients were made
with, not with the one of the step at which it is applied.

GradScaler tells an optimizer its scale and whether it found infinities, if the optimizer says that
it takes care of scaling itself. While updates come late, ours says so. A script that unscales by
itself (``scaler.unscale_()``) divides by the scale of this step, so gradients that were made with
another one are brought to it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import torch

from deft_horovod.runtime.reduce.planned import PlannedReducer
from deft_horovod.runtime.reduce.scaler_call import ScalerCall

if TYPE_CHECKING:
    from deft_horovod import _C as native

_KEPT_STEPS: Final = 4096  # longer than any generation lives


class LossScales:
    """The scale of each step's loss, by the step of the session."""

    def __init__(self) -> None:
        self.asked = False  # a scaler is at work, whether updates come late or not
        self._of_step: dict[int, float] = {}
        self._unscaled: int | None = None  # the step at whose end the script has unscaled
        self._shown: torch.Tensor | None = None

    @property
    def used(self) -> bool:
        """Whether a scaler has told a scale."""
        return bool(self._of_step)

    def note(self, step: int, scale: torch.Tensor | float) -> None:
        """The scale of the step that has just ended is known."""
        self._of_step[step] = float(scale)
        self._of_step.pop(step - _KEPT_STEPS, None)

    def meet(self, reducer: PlannedReducer, call: ScalerCall) -> None:
        """A scaler walks the gradients of a boundary next. It insists on seeing one, also where
        nothing is due."""
        step = reducer.session.step - 1
        if call.unscales and self._unscaled != step:
            scale = call.scaler.get_scale()
            self.note(step, scale)
            self._unscaled = step
            reducer.dropped += self._divide(reducer, reducer.boundary, scale)
        if all(member.tensor.grad is None for member in reducer.members):
            self._shown = reducer.members[0].tensor
            self._shown.grad = torch.zeros_like(self._shown)

    def hide(self) -> None:
        """What was only shown must not reach the optimizer."""
        if self._shown is not None:
            self._shown.grad = None
            self._shown = None

    def unscale_boundary(
        self,
        reducer: PlannedReducer,
        scale: torch.Tensor | None,
        everyone: Iterable[torch.Tensor],
    ) -> None:
        """The scaler has looked at ``p.grad``, and tells the scale of the step that has ended
        unless it has unscaled by it already. `everyone`: of the optimizer's parameters, those that
        have gone the stock way in this step have its scale."""
        if scale is not None:
            self.note(reducer.session.step - 1, scale)
        due = {id(reducer.members[slot].tensor) for slot in reducer.members_of(reducer.boundary)}
        rest = [t for t in everyone if t.grad is not None and id(t) not in due]
        for tensor in rest:
            if tensor.grad is not None and scale is not None:
                tensor.grad.div_(float(scale))
        _clear(tensor for tensor in rest if not _is_finite(tensor))
        reducer.dropped += self.unscale(reducer, reducer.boundary)

    def unscale(self, reducer: PlannedReducer, dues: Sequence[native.Due]) -> int:
        """Divides what these generations left in ``p.grad`` by their scales, unless the script has
        done so at this boundary. One that mixes scales is dropped, as is one with infinities;
        returns how many were."""
        at_boundary = dues is reducer.boundary and self._unscaled == reducer.session.step - 1
        dropped = 0 if at_boundary else self._divide(reducer, dues, 1.0)
        for tensors in _by_generation(reducer, dues):
            if not all(map(_is_finite, tensors)):
                dropped += 1
                _clear(tensors)
        return dropped

    def _divide(self, reducer: PlannedReducer, dues: Sequence[native.Due], to_scale: float) -> int:
        """Brings each generation from its own scale to this one; returns how many have several,
        and were dropped."""
        dropped = 0
        for due, tensors in zip(dues, _by_generation(reducer, dues), strict=True):
            scales = {self._of_step.get(s, 1.0) for s in range(due.first_step, due.last_step + 1)}
            gradients = [t.grad for t in tensors if t.grad is not None]
            if len(scales) > 1:
                dropped += 1
                _clear(tensors)
            elif gradients and scales != {to_scale}:
                torch._foreach_div_(gradients, scales.pop() / to_scale)
        return dropped

    def to_state(self) -> tuple[tuple[int, float], ...]:
        """For a checkpoint."""
        return tuple(self._of_step.items())

    def restore(self, state: Iterable[tuple[int, float]]) -> None:
        """From a checkpoint."""
        self._of_step = dict(state)
        self._unscaled = None


def _by_generation(
    reducer: PlannedReducer, dues: Iterable[native.Due]
) -> Iterator[list[torch.Tensor]]:
    """The parameters of each; one that has parts in several comes with the first."""
    done: set[int] = set()
    for due in dues:
        slots = sorted(reducer.members_of([due]) - done)
        done.update(slots)
        yield [reducer.members[slot].tensor for slot in slots]


def _is_finite(tensor: torch.Tensor) -> bool:
    gradient = tensor.grad
    if gradient is None:
        return True
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    return bool(values.isfinite().all())


def _clear(tensors: Iterable[torch.Tensor]) -> None:
    for tensor in tensors:
        tensor.grad = None
