"""Recognises a loss scaler at work.

Reading ``param_groups`` has no effect on training, with one exception: ``torch.amp.GradScaler``
finds the gradients that it unscales by walking the groups, and by then ``p.grad`` has to hold the
averages. So the scaler is recognised, and every other read has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Final

import torch

_READS: Final = "_unscale_grads_"  # of GradScaler, called by both of the following
_UNSCALES: Final = "unscale_"


@dataclass(frozen=True)
class ScalerCall:
    """A scaler that is about to walk the gradients."""

    scaler: torch.amp.GradScaler
    unscales: bool  # else it only looks for infinities, and leaves the unscaling to the optimizer


def scaler_call(reader: FrameType) -> ScalerCall | None:
    """`reader`: the function that reads the groups. None: it is not a scaler's."""
    if reader.f_code.co_name != _READS:
        return None
    scaler = reader.f_locals.get("self")
    if not isinstance(scaler, torch.amp.GradScaler):
        return None
    caller = reader.f_back
    return ScalerCall(scaler, caller is not None and caller.f_code.co_name == _UNSCALES)
