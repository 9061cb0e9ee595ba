"""What this rank measured, as medians over its steps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from torch import nn

from deft_horovod.profile import ModuleProfile
from deft_horovod.profile.aggregate import RankReport, StageTimes
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.step_record import STAGES, StepTimes
from deft_horovod.runtime.measure.timestamps import Times
from deft_horovod.runtime.ranks.named_parameters import NamedParameter


def rank_report(
    rank: int,
    steps: Sequence[StepTimes],
    observer: Observer,
    members: Sequence[NamedParameter],
    modules: Sequence[nn.Module],
) -> RankReport:
    """The report of this rank; `modules` are those that were timed, indices are of `members`."""
    steps = undisturbed(steps)
    times = [step.modules for step in steps if step.modules is not None]
    first_call_us = _medians([each.first_call_us for each in times], len(modules))
    own_us = _medians([each.own_us for each in times], len(modules))
    # Timing modules takes time, so what else was measured then counts only if there is no more.
    clean = [step for step in steps if step.modules is None] or list(steps)
    ready_us = _medians([step.ready_us for step in clean], len(observer.members))
    place = {module: i for i, module in enumerate(modules)}
    index = {id(member): i for i, member in enumerate(members)}
    watched = [index.get(id(member)) for member in observer.members]
    ready: list[float | None] = [None] * len(members)
    for i, us in zip(watched, ready_us, strict=True):
        if i is not None:
            ready[i] = _seen(us)
    first_use = [
        _seen(first_call_us[place[gate]]) if gate in place else None
        for gate in observer.gates(members)
    ]
    return RankReport(
        rank=rank,
        steps=len(steps),
        stages=tuple(_stage(clean, stage) for stage in STAGES) if steps else (),
        ready_order=_order(clean, ready, watched),
        ready_us=tuple(ready),
        first_use_us=tuple(first_use),
        modules=tuple(
            ModuleProfile(name=name, type=kind, forward_us=us, parameters=owned)
            for module, (name, kind) in zip(modules, names_of(modules, observer), strict=True)
            if (us := _seen(own_us[place[module]])) is not None
            and (owned := _owned(module, observer, watched))
        ),
    )


def undisturbed(steps: Sequence[StepTimes]) -> list[StepTimes]:
    """Without the steps in which the script evaluated the model, unless most steps do."""
    quiet = [step for step in steps if not step.evaluated]
    return quiet if 2 * len(quiet) >= len(steps) else list(steps)


def names_of(modules: Sequence[nn.Module], observer: Observer) -> list[tuple[str, str]]:
    """The name of each module and its type.

    With one outermost module it is the path from there. With several of them such paths would be
    ambiguous, and what the names of the module's parameters begin with is taken.
    """
    paths: dict[nn.Module, str] = {}
    if len(observer.roots) == 1:
        paths = {module: name for name, module in observer.roots[0].named_modules()}
    names = []
    for module in modules:
        owned = [observer.members[i].name for i in observer.owners.get(module, ())]
        name = paths.get(module)
        names.append((_prefix(owned) if name is None else name, type(module).__name__))
    return names


def _prefix(names: Sequence[str]) -> str:
    """The modules that all these parameters lie in: 'a.b' for 'a.b.weight' and 'a.b.c.bias'."""
    common: list[str] = []
    for words in zip(*(name.split(".")[:-1] for name in names), strict=False):
        if len(set(words)) > 1:
            break
        common.append(words[0])
    return ".".join(common)


def _owned(module: nn.Module, observer: Observer, watched: Sequence[int | None]) -> tuple[int, ...]:
    places = (watched[i] for i in observer.owners.get(module, ()))
    return tuple(sorted(place for place in places if place is not None))


def _stage(steps: Sequence[StepTimes], stage: str) -> StageTimes:
    times_us = [step.stages[stage] for step in steps]
    p10, median, p90 = (float(us) for us in np.percentile(times_us, [10, 50, 90]))
    return StageTimes(stage=stage, median_us=median, p10_us=p10, p90_us=p90)


def _order(
    steps: Sequence[StepTimes], ready_us: Sequence[float | None], watched: Sequence[int | None]
) -> tuple[int, ...]:
    """By median; what is ready at the same time goes as in the last step."""
    last = {watched[i]: place for place, i in enumerate(steps[-1].order)} if steps else {}
    came = [(us, last.get(i, len(last)), i) for i, us in enumerate(ready_us) if us is not None]
    return tuple(i for _, _, i in sorted(came))


def _medians(rows: Sequence[Times], columns: int) -> Times:
    """Over the steps in which it was seen; nan where it never was."""
    if not rows:
        return np.full(columns, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of nothing but nan
        return np.asarray(np.nanmedian(np.stack(rows), axis=0), dtype=np.float64)


def _seen(us: float) -> float | None:
    return None if np.isnan(us) else float(us)
