"""From what each rank measured to the one profile of all.

Training waits for the slowest rank in every step, so of all ranks' medians the largest counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from deft_horovod.base.record import Index, Microseconds, Name, Part, Record
from deft_horovod.profile.profile import LinkProfile, ModuleProfile, Profile, Spread, Tensor

_STAGES: Final = ("forward", "backward", "optimizer", "step")


class StageTimes(Part):
    """One stage on one rank, over its steps."""

    stage: Name
    median_us: Microseconds
    p10_us: Microseconds
    p90_us: Microseconds


class RankReport(Record):
    """What one rank measured: medians over its steps. Indices are positions of parameters."""

    rank: Index
    steps: Index
    stages: tuple[StageTimes, ...]  # forward, backward, optimizer, step
    ready_order: tuple[Index, ...]  # those that became ready, the first one first
    ready_us: tuple[Microseconds | None, ...]  # None: never
    first_use_us: tuple[Microseconds | None, ...]  # None: not seen
    modules: tuple[ModuleProfile, ...]


def aggregate(
    reports: Sequence[RankReport], tensors: Sequence[Tensor], links: Sequence[LinkProfile] = ()
) -> Profile:
    """The profile of all ranks from the reports of each, by rank.

    At least one of them has measured a step; those that have not are only counted. The order of the
    gradients is that of the lowest rank, followed by what became ready on other ranks alone. No
    gradient is ready before one that precedes it in this order.
    """
    size = len(reports)
    reports = [report for report in reports if report.steps > 0]
    stage_us = {stage: max(_medians(reports, stage)) for stage in _STAGES}
    ready_us = _largest(reports, lambda report: report.ready_us, unseen_wins=False)
    first_use_us = _largest(reports, lambda report: report.first_use_us, unseen_wins=True)
    order = _order(reports[0].ready_order, ready_us)
    return Profile(
        ready_order=order,
        ready_us=_in_order(order, ready_us, stage_us["backward"]),
        first_use_us=tuple(
            None if us is None else min(us, stage_us["forward"]) for us in first_use_us
        ),
        forward_us=stage_us["forward"],
        backward_us=stage_us["backward"],
        optimizer_us=stage_us["optimizer"],
        step_us=stage_us["step"],
        steps=min(report.steps for report in reports),
        size=size,
        links=tuple(links),
        tensors=tuple(tensors),
        modules=_modules(reports, stage_us["forward"]),
        spreads=tuple(_spread(reports, stage) for stage in _STAGES),
    )


def _stage(report: RankReport, name: str) -> StageTimes:
    return next(times for times in report.stages if times.stage == name)


def _medians(reports: Iterable[RankReport], stage: str) -> list[float]:
    return [_stage(report, stage).median_us for report in reports]


def _spread(reports: Sequence[RankReport], stage: str) -> Spread:
    medians_us = _medians(reports, stage)
    slowest = reports[medians_us.index(max(medians_us))]  # the lowest rank of equally slow ones
    times = _stage(slowest, stage)
    return Spread(
        stage=stage,
        p10_us=times.p10_us,
        p90_us=times.p90_us,
        slowest_rank=slowest.rank,
        fastest_rank_us=min(medians_us),
    )


def _largest(
    reports: Sequence[RankReport],
    field: Callable[[RankReport], Sequence[float | None]],
    unseen_wins: bool,
) -> list[float | None]:
    """The largest time of each parameter; None where it is on every rank, or if it wins on one."""
    result: list[float | None] = []
    for times in zip(*(field(report) for report in reports), strict=True):
        seen = [us for us in times if us is not None]
        unknown = not seen or (unseen_wins and len(seen) < len(times))
        result.append(None if unknown else max(seen))
    return result


def _order(first: Sequence[int], ready_us: Sequence[float | None]) -> tuple[int, ...]:
    listed = set(first)
    rest = [i for i in range(len(ready_us)) if i not in listed]
    late = sorted((us, i) for i in rest if (us := ready_us[i]) is not None)
    return (*first, *(i for _, i in late), *(i for i in rest if ready_us[i] is None))


def _in_order(
    order: Sequence[int], ready_us: Sequence[float | None], end_us: float
) -> tuple[float, ...]:
    result = [end_us] * len(order)
    latest_us = 0.0
    for index in order:
        us = ready_us[index]
        latest_us = min(end_us, max(latest_us, end_us if us is None else us))
        result[index] = latest_us
    return tuple(result)


def _modules(reports: Sequence[RankReport], forward_us: float) -> tuple[ModuleProfile, ...]:
    """The modules of the lowest rank, as slow as on the slowest rank that has them.

    They are timed in other steps than the stage; none takes longer than that.
    """
    times_us: dict[tuple[str, str], float] = {}
    for report in reports:
        for module in report.modules:
            key = (module.name, module.type)
            times_us[key] = max(times_us.get(key, 0.0), module.forward_us)
    return tuple(
        module.model_copy(
            update={"forward_us": min(forward_us, times_us[module.name, module.type])}
        )
        for module in reports[0].modules
    )
