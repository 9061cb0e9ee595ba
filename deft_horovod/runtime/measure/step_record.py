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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from deft_horovod.runtime.extension import native
from deft_horovod.runtime.measure.module_timer import Calls
from deft_horovod.runtime.measure.timestamps import Clock, Moment, Times

STAGES: Final = ("forward", "backward", "optimizer", "step")


class Pass(NamedTuple):
    """A backward pass that begins."""

    host_us: int  # when the host came by
    moment: Moment


@dataclass(frozen=True)
class StepRecord:
    """What a step left behind; on a GPU it is still being computed."""

    began: Moment  # the wait of the step before was over
    updated: Moment | None  # the optimizer had updated; None: it did not
    backward: Pass
    asked: Moment  # for the averages
    done: Moment  # they were there
    collected: native.Collected
    gradients: Mapping[int, Moment]  # of parameters on the clock's device, if that is a GPU
    calls: Calls
    timed_modules: int | None  # None: modules were not timed, but for a look at the outermost ones


@dataclass(frozen=True)
class ModuleTimes:
    """By timed module, in microseconds; what was not called is nan."""

    first_call_us: Times  # since forward began
    own_us: Times  # all its calls, less the timed ones inside them


@dataclass(frozen=True)
class StepTimes:
    """A step in microseconds; what was not seen is nan."""

    stages: Mapping[str, float]
    ready_us: Times  # by parameter, since backward began
    modules: ModuleTimes | None
    order: tuple[int, ...]  # of the gradients
    evaluated: bool


def backward_began(passes: Sequence[Pass], collected: native.Collected) -> Pass | None:
    """Of the backward passes of a step the one in which the first gradient became ready.

    None: no pass, or no gradient. A forward may run passes of its own (gradient penalties); those
    come before it.
    """
    ready = [us for us in collected.ready_us if us >= 0]
    if not ready:
        return None
    first_ready_us = collected.began_us + min(ready)
    return next((p for p in reversed(passes) if p.host_us <= first_ready_us), None)


def step_times(record: StepRecord, clock: Clock) -> StepTimes:
    """Reads the moments of a step that has passed."""
    forward = record.began if record.updated is None else record.updated
    backward = record.backward.moment
    stages = {
        "optimizer": clock.between_us(record.began, forward),
        "forward": clock.between_us(forward, backward),
        "backward": clock.between_us(backward, record.asked),
        "step": clock.between_us(record.began, record.done),
    }
    modules = None
    if record.timed_modules is not None:
        modules = _module_times(record.calls, forward, clock, record.timed_modules)
    return StepTimes(
        stages=stages,
        ready_us=np.minimum(_ready_us(record, clock), stages["backward"]),
        modules=modules,
        order=tuple(record.collected.order),
        evaluated=record.calls.evaluated,
    )


def _ready_us(record: StepRecord, clock: Clock) -> Times:
    ready_us = np.array(record.collected.ready_us, dtype=np.float64)
    came = ready_us >= 0
    ready_us += record.collected.began_us - record.backward.host_us
    ready_us[~came] = np.nan
    on_device = [index for index in record.gradients if came[index]]
    ready_us[on_device] = clock.since_us(
        record.backward.moment, [record.gradients[index] for index in on_device]
    )
    return np.maximum(ready_us, 0.0)


def _module_times(calls: Calls, forward: Moment, clock: Clock, modules: int) -> ModuleTimes:
    first_call_us = np.full(modules, np.nan)
    own_us = np.full(modules, np.nan)
    if not calls.modules or any(left is None for left in calls.left):
        return ModuleTimes(first_call_us, own_us)
    module, outer = np.array(calls.modules), np.array(calls.outer)
    entered_us = clock.since_us(forward, calls.entered)
    took_us = np.maximum(clock.since_us(forward, calls.left) - entered_us, 0.0)
    own_us[module] = 0.0
    np.add.at(own_us, module, took_us)
    nested = outer >= 0
    np.subtract.at(own_us, module[outer[nested]], took_us[nested])
    first_call_us[module[::-1]] = entered_us[::-1]  # of equal indices the last one counts
    return ModuleTimes(first_call_us, np.maximum(own_us, 0.0))
