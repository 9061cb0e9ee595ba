"""Moments of a step, and the time between them, on the clock of the device that computes.

A GPU works behind the host, so there a moment is an event in its stream; what lies between two
events can be read once the GPU has come by, and nobody waits for that. On the host a moment is a
number: thousands of them are kept for a while, and objects would make Python collect garbage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from deft_horovod.runtime.extension import native

_US_PER_MS: Final = 1e3

Times = NDArray[np.float64]
Moment = Any  # what now() of a clock returned, to be given to the same clock


class Clock(Protocol):
    """Takes moments and tells how far apart they are."""

    device: torch.device

    def now(self) -> Moment:
        """This point of the program."""

    def between_us(self, earlier: Moment, later: Moment) -> float:
        """The time from one moment to the other; both have passed."""

    def since_us(self, earlier: Moment, later: Sequence[Moment]) -> Times:
        """The time from one moment to each of many."""

    def wait_for(self, moment: Moment) -> None:
        """Returns once the moment has passed."""


class HostClock:
    """What the host computes itself is done when it comes by. Moments are `steady_us()`."""

    device: torch.device = torch.device("cpu")

    def now(self) -> Moment:
        return native.steady_us()

    def between_us(self, earlier: Moment, later: Moment) -> float:
        return max(0.0, float(later - earlier))

    def since_us(self, earlier: Moment, later: Sequence[Moment]) -> Times:
        times: Times = np.maximum(np.array(later, dtype=np.float64) - earlier, 0.0)
        return times

    def wait_for(self, moment: Moment) -> None:
        """Every moment has passed."""


class DeviceClock:
    """Events in the stream that is current where the moment is taken."""

    def __init__(
        self, device: torch.device, leave_event: Callable[[torch.device], Any] | None = None
    ) -> None:
        self.device = device
        self._leave_event = leave_event or _leave_event

    def now(self) -> Moment:
        return self._leave_event(self.device)

    def between_us(self, earlier: Moment, later: Moment) -> float:
        return max(0.0, float(earlier.elapsed_time(later)) * _US_PER_MS)

    def since_us(self, earlier: Moment, later: Sequence[Moment]) -> Times:
        return np.array([self.between_us(earlier, moment) for moment in later], dtype=np.float64)

    def wait_for(self, moment: Moment) -> None:
        moment.synchronize()


def _leave_event(device: torch.device) -> Any:
    event = torch.cuda.Event(enable_timing=True)
    event.record(torch.cuda.current_stream(device))
    return event


def clock_for(tensors: Sequence[torch.Tensor]) -> Clock:
    """The clock of the GPU that holds the first of these that is on one, else the host's."""
    for tensor in tensors:
        if tensor.is_cuda:
            return DeviceClock(tensor.device)
    return HostClock()
