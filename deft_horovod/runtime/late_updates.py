"""Updates outside of ``step()``: what is still on its way, applied at once.

By the user's own optimizer, on exactly the parameters that are due, with the options (learning
rate, ...) of the moment at which they are applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from deft_horovod.runtime.loss_scale import LossScales
from deft_horovod.runtime.partial_update import options_of, own_gradients_kept, update_only
from deft_horovod.runtime.planned_reducer import PlannedReducer

if TYPE_CHECKING:
    from deft_horovod import _C as native


def apply_now(
    reducer: PlannedReducer,
    inner: torch.optim.Optimizer,
    dues: Sequence[native.Due],
    scales: LossScales,
) -> None:
    """Waits for these generations and lets the optimizer update their parameters."""
    touched = [reducer.members[slot].tensor for slot in sorted(reducer.members_of(dues))]
    with own_gradients_kept(touched):
        reducer.take(dues)
        if scales.used:
            reducer.dropped += scales.unscale(reducer, dues)
        arrived = [tensor for tensor in touched if tensor.grad is not None]
        update_only(inner, arrived, options_of(inner))


def flush(reducer: PlannedReducer, inner: torch.optim.Optimizer, scales: LossScales) -> None:
    """Sends what is left and applies it, boundary by boundary. All ranks at the same boundary."""
    for dues in reducer.flush():
        apply_now(reducer, inner, dues, scales)
