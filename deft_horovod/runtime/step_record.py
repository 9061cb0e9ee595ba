"""One measured step: its moments, and the times between them once they have passed.

A step runs from the end of one wait for communication to the end of the next:

    optimizer   the update, until the user's optimizer returns
    forward     everything from there until backward begins: scheduler, data, zero_grad, forward
    backward    from its first node until the optimizer asks for the averages
    waiting     until they are there

so what a step takes without communication is the sum of the first three. With several passes for
each step, backward is the pass in which gradients become ready for good; what comes before it
belongs to forward.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from deft_horovod.runtime.extension import native
from deft_horovod.runtime.module_timer import Calls
from deft_horovod.runtime.moments import Clock, Moment

STAGES: Final = ("forward", "backward", "optimizer", "step")

Times = NDArray[np.float64]


@dataclass(frozen=True)
class StepRecord:
    """What a step left behind; on a GPU it is still being computed."""

    began: Moment  # the wait of the step before was over
    updated: Moment | None  # the optimizer had updated; None: it did not
    backward: Moment
    asked: Moment  # for the averages
    done: Moment  # they were there
    collected: native.Collected
    gradients: Mapping[int, Moment]  # of parameters on the clock's device, if that is a GPU
    calls: Calls


@dataclass(frozen=True)
class StepTimes:
    """A step in microseconds; what was not seen is nan."""

    stages: Mapping[str, float]
    ready_us: Times  # by parameter, since backward began
    first_call_us: Times  # by timed module, since forward began
    own_us: Times  # by timed module: all its calls, less the timed ones inside them
    order: tuple[int, ...]  # of the gradients
    evaluated: bool


def backward_began(begins: Sequence[Moment], collected: native.Collected) -> Moment | None:
    """Of the backward passes of a step the one in which the first gradient became ready.

    None: no pass, or no gradient. A forward may run passes of its own (gradient penalties); those
    come before it.
    """
    ready = [us for us in collected.ready_us if us >= 0]
    if not ready:
        return None
    first_ready_us = collected.began_us + min(ready)
    return next((b for b in reversed(begins) if b.host_us <= first_ready_us), None)


def step_times(record: StepRecord, clock: Clock, modules: int) -> StepTimes:
    """Reads the moments of a step that has passed."""
    forward = record.updated or record.began
    stages = {
        "optimizer": clock.between_us(record.began, forward),
        "forward": clock.between_us(forward, record.backward),
        "backward": clock.between_us(record.backward, record.asked),
        "step": clock.between_us(record.began, record.done),
    }
    first_call_us, own_us = _module_times(record.calls, forward, clock, modules)
    return StepTimes(
        stages=stages,
        ready_us=np.minimum(_ready_us(record, clock), stages["backward"]),
        first_call_us=np.minimum(first_call_us, stages["forward"]),
        own_us=own_us,
        order=tuple(record.collected.order),
        evaluated=record.calls.evaluated,
    )


def _ready_us(record: StepRecord, clock: Clock) -> Times:
    ready_us = np.array(record.collected.ready_us, dtype=np.float64)
    came = ready_us >= 0
    ready_us += record.collected.began_us - record.backward.host_us
    ready_us[~came] = np.nan
    for index, moment in record.gradients.items():
        if came[index]:
            ready_us[index] = clock.between_us(record.backward, moment)
    return np.maximum(ready_us, 0.0)


def _module_times(calls: Calls, forward: Moment, clock: Clock, modules: int) -> tuple[Times, Times]:
    first_call_us = [math.nan] * modules
    own_us = [0.0] * modules
    for call in calls.calls:
        took_us = clock.between_us(call.entered, call.left)
        own_us[call.module] += took_us
        if call.outer >= 0:
            own_us[calls.calls[call.outer].module] -= took_us
        if math.isnan(first_call_us[call.module]):
            first_call_us[call.module] = clock.between_us(forward, call.entered)
    first = np.array(first_call_us)
    return first, np.where(np.isnan(first), np.nan, np.maximum(own_us, 0.0))
