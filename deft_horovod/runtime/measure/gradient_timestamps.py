"""When gradients are ready on a GPU: events in the stream, left by hooks of the parameters.

The collector's own times are those of the host, which is ahead of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.utils.hooks import RemovableHandle

from deft_horovod.runtime.measure.timestamps import Clock, Moment


class GradientTimestamps:
    """The latest moment of each parameter that is on the clock's device, by index."""

    def __init__(self, tensors: Sequence[torch.Tensor], clock: Clock) -> None:
        self._moments: dict[int, Moment] = {}
        self._handles: list[RemovableHandle] = [
            tensor.register_post_accumulate_grad_hook(_noting(self._moments, i, clock))
            for i, tensor in enumerate(tensors)
            if tensor.device == clock.device
        ]

    def take(self) -> dict[int, Moment]:
        """What was noted since the last time this was asked; later passes replace earlier ones."""
        taken = dict(self._moments)
        self._moments.clear()
        return taken

    def detach(self) -> None:
        """Removes all hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


def _noting(moments: dict[int, Moment], index: int, clock: Clock) -> Callable[[torch.Tensor], None]:
    def note(_: torch.Tensor) -> None:
        moments[index] = clock.now()

    return note
