"""What a step took, and how much of it was communication that nothing hid."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Final

_WINDOW: Final = 200
_US: Final = 1e6


class StepClock:
    """Times steps from boundary to boundary, and the waiting inside them."""

    def __init__(self) -> None:
        self.steps = 0
        self._boundary_s: float | None = None
        self._exposed_s = 0.0
        self._step_us: deque[float] = deque(maxlen=_WINDOW)
        self._exposed_us: deque[float] = deque(maxlen=_WINDOW)

    @contextmanager
    def exposed(self) -> Iterator[None]:
        """The training thread waits for communication."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            self._exposed_s += time.perf_counter() - began_s

    def boundary(self) -> None:
        """A step has ended."""
        now_s = time.perf_counter()
        if self._boundary_s is not None:
            self._step_us.append((now_s - self._boundary_s) * _US)
            self._exposed_us.append(self._exposed_s * _US)
        self._boundary_s = now_s
        self._exposed_s = 0.0
        self.steps += 1

    def skip(self) -> None:
        """What happened since the boundary (planning, measuring) is no part of the next step."""
        if self._boundary_s is not None:
            self._boundary_s = time.perf_counter()

    def forget(self) -> None:
        """Medians begin anew: something else runs from now on."""
        self._step_us.clear()
        self._exposed_us.clear()
        self.skip()

    @property
    def last_step_us(self) -> float:
        """The step that has ended last; 0 if it was the first."""
        return self._step_us[-1] if self._step_us else 0.0

    def medians(self) -> dict[str, float]:
        """Medians over the latest steps: step, compute and exposed communication time."""
        if not self._step_us:
            return {"step_us": 0.0, "compute_us": 0.0, "exposed_us": 0.0}
        step_us = median(self._step_us)
        exposed_us = median(self._exposed_us)
        computed = (s - e for s, e in zip(self._step_us, self._exposed_us, strict=True))
        return {"step_us": step_us, "compute_us": median(computed), "exposed_us": exposed_us}
