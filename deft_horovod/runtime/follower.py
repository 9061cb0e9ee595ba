"""Follower: an object that is told how the steps of one optimizer go."""

from __future__ import annotations

from enum import IntEnum
from typing import Generic, TypeVar

At_contra = TypeVar("At_contra", contravariant=True)


class Wish(IntEnum):
    """What a follower asks for when a step has ended; later ones include those before."""

    NOTHING = 0
    ANOTHER_PLAN = 1  # from what was measured
    MEASURE_AGAIN = 2  # what was measured is no longer true


class Follower(Generic[At_contra]):
    """`At_contra` says what it needs to know of a boundary. What is not overridden does nothing."""

    def begin_boundary(self) -> None:
        """Backward is over; the averages are asked for."""

    def end_boundary(self, at: At_contra) -> Wish:  # noqa: ARG002
        """The averages are there. Returns what this rank asks for."""
        return Wish.NOTHING

    def updated(self) -> None:
        """The optimizer has returned; what waits behind gates is not updated yet."""

    def skip_step(self) -> None:
        """The gradients of this step were thrown away."""
