"""Moments of a step, and the time between them, on the clock of the device that computes.

A GPU works behind the host, so there a moment is an event in its stream; what lies between two
events can be read once the GPU has come by, and nobody waits for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import torch

from deft_horovod.runtime.extension import native

_US_PER_MS: Final = 1e3


class Moment(NamedTuple):
    """A point of the program: when the host came by, and the event it left in the stream."""

    host_us: float
    event: Any = None


class Clock(Protocol):
    """Takes moments and tells how far apart they are."""

    device: torch.device

    def now(self) -> Moment:
        """This point of the program."""

    def between_us(self, earlier: Moment, later: Moment) -> float:
        """The time from one moment to the other; both have passed."""

    def passed(self, moment: Moment) -> bool:
        """Whether the time up to this moment can be read without waiting."""

    def wait_for(self, moment: Moment) -> None:
        """Returns once the moment has passed."""


class HostClock:
    """What the host computes itself is done when it comes by."""

    device: torch.device = torch.device("cpu")

    def now(self) -> Moment:
        return Moment(native.steady_us())

    def between_us(self, earlier: Moment, later: Moment) -> float:
        return max(0.0, later.host_us - earlier.host_us)

    def passed(self, moment: Moment) -> bool:  # noqa: ARG002
        return True

    def wait_for(self, moment: Moment) -> None:
        """Every moment has passed."""


class DeviceClock:
    """Events in the stream that is current where the moment is taken."""

    def __init__(self, device: torch.device, make_event: Callable[[], Any] | None = None) -> None:
        self.device = device
        self._make_event = make_event or _timing_event

    def now(self) -> Moment:
        event = self._make_event()
        event.record()
        return Moment(native.steady_us(), event)

    def between_us(self, earlier: Moment, later: Moment) -> float:
        return max(0.0, float(earlier.event.elapsed_time(later.event)) * _US_PER_MS)

    def passed(self, moment: Moment) -> bool:
        return bool(moment.event.query())

    def wait_for(self, moment: Moment) -> None:
        moment.event.synchronize()


def _timing_event() -> Any:
    return torch.cuda.Event(enable_timing=True)


def clock_for(tensors: Sequence[torch.Tensor]) -> Clock:
    """The clock of the GPU that holds the first of these that is on one, else the host's."""
    for tensor in tensors:
        if tensor.is_cuda:
            return DeviceClock(tensor.device)
    return HostClock()
