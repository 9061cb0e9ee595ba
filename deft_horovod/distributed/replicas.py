"""Replicas: every rank has the parameters and buffers of rank 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
import torch.distributed

# Torch annotates only part of what is there.
_DISTRIBUTED: Final[Any] = torch.distributed
_ROOT: Final = 0


def make_equal(model: torch.nn.Module, *, buffers: bool = True) -> None:
    """What a model is trained from. All ranks call it."""
    _broadcast([*model.parameters(), *(model.buffers() if buffers else ())])


def broadcast_before_forward(model: torch.nn.Module) -> None:
    """Each forward in training begins with the buffers of rank 0, as torch's
    ``DistributedDataParallel`` does. An evaluation may run on one rank alone."""
    if any(True for _ in model.buffers()):
        model.register_forward_pre_hook(_before_forward)


def begin_forward(model: torch.nn.Module) -> None:
    """A forward of all ranks, if it is one in training."""
    if model.training and torch.is_grad_enabled():
        _broadcast(list(model.buffers()))


def _before_forward(model: torch.nn.Module, _: object) -> None:
    begin_forward(model)


def _broadcast(tensors: Sequence[torch.Tensor]) -> None:
    """One message for all of a kind."""
    kinds: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
    for tensor in tensors:
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    for same in kinds.values():
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in same])
        _DISTRIBUTED.broadcast(flat, _ROOT)
        begin = 0
        with torch.no_grad():
            for tensor in same:
                end = begin + tensor.numel()
                tensor.copy_(flat[begin:end].view_as(tensor))
                begin = end
