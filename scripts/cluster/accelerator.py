"""An accelerator that computes nothing but takes its time: layers sleep, gradients are real.

The processor stays free for communication, as it is beside a real accelerator. Time is kept by a
clock of the device: an operation begins at the scheduled end of the one before it, so that the
sleeps' overshoot does not add up. If the host comes late, it begins when the host comes.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from deft_horovod.workloads.workload import Workload

# A host that is less late is forgiven: a real one would have enqueued the operation beforehand.
FORGIVEN_S = 0.0015
# A longer gap between two operations in which the thread slept was a wait for communication.
SHORTEST_WAIT_S = 0.0002
# Sleeping for less takes longer than that; the clock runs ahead by so much at most.
SHORTEST_SLEEP_S = 0.00005


def _sleeps_so_far() -> int:
    """How often this thread has let go of its core by itself (being preempted does not count)."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class DeviceClock:
    """Schedules operations one after the other; the caller sleeps until each has ended."""

    def __init__(
        self,
        now_s: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
        sleeps_so_far: Callable[[], int] = _sleeps_so_far,
    ) -> None:
        self._now_s, self._sleep, self._sleeps_so_far = now_s, sleep, sleeps_so_far
        self._returned_s = self._free_s = now_s()
        self._sleeps = sleeps_so_far()
        # For how long the device had nothing to do: since the host waited, or since it was busy.
        self.waited_s = 0.0
        self.late_s = 0.0

    def begin(self, duration_s: float) -> None:
        """Starts an operation: when the one before it ends, or now if the host was held up."""
        now_s = self._now_s()
        gap_s = now_s - self._returned_s
        waited = gap_s > SHORTEST_WAIT_S and self._sleeps_so_far() != self._sleeps
        idle_s = now_s - self._free_s
        if idle_s > (0.0 if waited else FORGIVEN_S):
            self._free_s = now_s
            if waited:
                self.waited_s += idle_s
            else:
                self.late_s += idle_s
        self._free_s += duration_s

    def end(self) -> None:
        """Returns when the operation has ended."""
        left_s = self._free_s - self._now_s()
        if left_s > SHORTEST_SLEEP_S:
            self._sleep(left_s)
        self._returned_s = self._now_s()
        self._sleeps = self._sleeps_so_far()

    def restart(self) -> None:
        """The device has been idle until now."""
        self._returned_s = self._free_s = self._now_s()
        self._sleeps = self._sleeps_so_far()


class _Operation(torch.autograd.Function):
    """Takes the layer's time in both stages; its parameters are inputs, so autograd treats their
    gradients as it always does."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, layer: SleepingLayer, *_: torch.Tensor) -> torch.Tensor:
        ctx.layer = layer
        layer.clock.begin(layer.forward_s)
        layer.clock.end()
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        layer: SleepingLayer = ctx.layer
        layer.clock.begin(layer.backward_s)
        made = layer.make_gradients()
        layer.clock.end()
        return (gradients[0], None, *made)


class SleepingLayer(nn.Module):
    """A layer with real parameters that takes a given time."""

    def __init__(
        self, clock: DeviceClock, forward_s: float, backward_s: float, *, square: bool = False
    ) -> None:
        super().__init__()
        self.clock, self.forward_s, self.backward_s = clock, forward_s, backward_s
        self._square = square
        self.gradient: float | None = None  # of the first parameter; each further one has 1 more
        self._first = 0
        self._buffers_of_gradients: list[torch.Tensor | None] = []

    def own(self, first: int, elements: dict[str, int]) -> None:
        """Gets its parameters, all zero; `first` is the number of the first one in the model."""
        self._first = first
        for name, count in elements.items():
            # As in real models: only vectors always travel as they are.
            is_vector = "norm" in name or name.endswith("bias")
            rows = math.isqrt(count) if self._square else 1
            shape = (count,) if is_vector else (rows, count // rows)
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))
            self._buffers_of_gradients.append(torch.zeros(shape))

    def share(self, name: str, parameter: nn.Parameter) -> None:
        """Uses a parameter of an earlier layer, which gives the gradient: its turn is later."""
        self.register_parameter(name, parameter)
        self._buffers_of_gradients.append(None)

    def make_gradients(self) -> list[torch.Tensor | None]:
        """One tensor for each parameter, over memory that stays: the host copies nothing, and
        writes only when values are asked for."""
        made: list[torch.Tensor | None] = []
        for offset, memory in enumerate(self._buffers_of_gradients):
            if memory is not None and self.gradient is not None:
                memory.fill_(self.gradient + self._first + offset)
            # A new tensor each time: autograd keeps it as p.grad instead of copying it.
            made.append(None if memory is None else memory.detach())
        return made

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Operation.apply(x, self, *self.parameters(recurse=False))  # type: ignore[no-untyped-call, no-any-return]


class SleepingModel(nn.Module):
    """A workload on an accelerator of its own; calling it returns the loss. `square`: what is no
    vector is as square a matrix as it can be, of a few elements less; else it is one row."""

    def __init__(self, workload: Workload, compute_s: float, *, square: bool = False) -> None:
        super().__init__()
        self.clock = DeviceClock()
        self.layers: list[SleepingLayer] = []
        owners: dict[str, nn.Parameter] = {}
        stages = workload.stage_s(compute_s)
        for spec, (forward_s, backward_s) in zip(workload.layers, stages, strict=True):
            layer = SleepingLayer(self.clock, forward_s, backward_s, square=square)
            layer.own(len(owners), {tensor.name: tensor.elements for tensor in spec.tensors})
            for name, parameter in layer.named_parameters():
                owners[f"{spec.name}.{name}"] = parameter
            for shared in spec.shared:
                layer.share(shared.rsplit(".", maxsplit=1)[-1], owners[shared])
            self.add_module(spec.name, layer)
            self.layers.append(layer)

    def set_gradient(self, value: float) -> None:
        """From now on every element of the i-th parameter's gradient is `value` + i."""
        for layer in self.layers:
            layer.gradient = value

    def forward(self) -> torch.Tensor:
        x = torch.ones(1, requires_grad=True)
        for layer in self.layers:
            x = layer(x)
        return x.sum()


class DeviceSgd(torch.optim.SGD):
    """An update that costs the host nothing: an accelerator's memory makes it a small part of a
    step, while a processor of two cores would need longer for it than for all the rest."""

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        return None if closure is None else closure()
