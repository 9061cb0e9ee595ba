"""deft: of the plans that DeFT's scheme makes, the one that is predicted to be the best.

The scheme itself is in `windows`. It is played for messages of a few sizes, on the first link alone
and on all of them, and, where it does not repeat itself, leaves compute waiting or merges, at a few
cadences (see `cadence`). What counts is what the timeline shows: first the time that a step waits
for communication, then how often parameters are updated, then how many links it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from deft_horovod.base.parameter import Parameter
from deft_horovod.errors import PlanError
from deft_horovod.plan import Plan
from deft_horovod.plan.staleness import updates_per_step
from deft_horovod.profile import Profile
from deft_horovod.solver.assemble import assemble
from deft_horovod.solver.deft.cadence import cadences, needs_merging
from deft_horovod.solver.deft.windows import Cadence, PeriodSchedule, Rhythm, schedule
from deft_horovod.solver.links import link_sets
from deft_horovod.solver.messages.blocks import (
    COARSE_SHARES,
    DEFAULT_SHARES,
    FINE_SHARES,
    Blocking,
    distinct_blockings,
)
from deft_horovod.solver.predict.bounds import bound_us
from deft_horovod.solver.predict.prediction import predict
from deft_horovod.solver.predict.timeline import simulate
from deft_horovod.solver.problem import Limits, Problem, problem_of

_SHARES: Final = (DEFAULT_SHARES, FINE_SHARES, COARSE_SHARES)  # of the messages to try
# Waiting that is longer than necessary by less than this share of a step counts as none.
_TOLERANCE: Final = 0.002


@dataclass(frozen=True)
class _Setting:
    """What all candidates on the same links share."""

    policy: str
    profile: Profile
    limits: Limits
    links: tuple[int, ...]
    blockings: tuple[Blocking, ...]
    bound_us: float

    @property
    def enough_us(self) -> float:
        """Of waiting: hardly more than what no plan can avoid."""
        compute_us = self.profile.compute_us
        return max(0.0, self.bound_us - compute_us) + _TOLERANCE * compute_us

    def problem(self, blocking: Blocking) -> Problem:
        return problem_of(blocking, self.profile, self.limits, self.links)


@dataclass(frozen=True)
class _PlayedPlan:
    plan: Plan
    exposed_us: float
    is_hidden: bool
    status: str
    links: int

    @property
    def key(self) -> tuple[float, float, int]:
        """The smallest is the best."""
        exposed_us = 0.0 if self.is_hidden else self.exposed_us
        return exposed_us, -updates_per_step(self.plan), self.links

    @property
    def is_best(self) -> bool:
        return self.is_hidden and updates_per_step(self.plan) == 1.0


def solve(policy: str, parameters: Sequence[Parameter], profile: Profile, limits: Limits) -> Plan:
    """Expects a measured link. The status of the prediction is 'feasible' if the windows repeat by
    themselves, 'cadence' if they were given one."""
    blockings = distinct_blockings(parameters, profile, _SHARES)
    bound = bound_us(parameters, profile, limits)
    best: _PlayedPlan | None = None
    for links in link_sets(profile, only_if_faster=False):
        found = _best_on(_Setting(policy, profile, limits, links, blockings, bound))
        if best is None or found.key < best.key:
            best = found
        if best.is_best:
            break
    assert best is not None  # noqa: S101 (there is a first link)
    return predict(best.plan, profile, bound_us=bound, status=best.status)


def _best_on(setting: _Setting) -> _PlayedPlan:
    """Finer and coarser messages are only tried where compute waits, or where sums are merged
    though the links could carry every step."""
    best: _PlayedPlan | None = None
    for blocking in setting.blockings:
        problem = setting.problem(blocking)
        for found in _tried(
            setting, blocking, problem, unmerged=best is not None and best.is_hidden
        ):
            if best is None or found.key < best.key:
                best = found
            if found.is_best or (found.is_hidden and found.status == "cadence"):
                break
        if best is not None and best.is_hidden and (best.is_best or needs_merging(problem)):
            break
    assert best is not None  # noqa: S101 (a plain cadence always repeats itself)
    return best


def _tried(
    setting: _Setting, blocking: Blocking, problem: Problem, *, unmerged: bool
) -> Iterator[_PlayedPlan]:
    """`unmerged`: of the cadences only that of every step."""
    for played, status in _schedules(problem, unmerged):
        for plan in _plans(setting, blocking, played):
            exposed_us = simulate(plan, setting.profile).exposed_us
            hidden = exposed_us <= setting.enough_us
            yield _PlayedPlan(plan, exposed_us, hidden, status, len(setting.links))
            if hidden:
                break


def _schedules(problem: Problem, unmerged: bool) -> Iterator[tuple[PeriodSchedule, str]]:
    found = schedule(problem)
    if found is not None:
        yield found, "feasible"
    every_step = Cadence(1, (Rhythm(1, 0),) * len(problem.items))
    for cadence in [every_step] if unmerged else cadences(problem):
        found = schedule(problem, cadence) or schedule(problem, cadence, plain=True)
        if found is not None:
            yield found, "cadence"


def _plans(setting: _Setting, blocking: Blocking, found: PeriodSchedule) -> Iterator[Plan]:
    """With every message held back for its window; and with each as soon as its turn comes, so
    that no link idles for the rest of a window into which nothing fits."""
    names = [setting.profile.links[link].name for link in setting.links]
    free = tuple(replace(departure, window=None) for departure in found.departures)
    for departures in (found.departures, free):
        plan = _assembled(setting.policy, blocking, replace(found, departures=departures), names)
        if plan is not None:
            yield plan


def _assembled(
    policy: str, blocking: Blocking, found: PeriodSchedule, links: Sequence[str]
) -> Plan | None:
    """None: a link sends its list in turn, and one window in it is later than a deadline behind."""
    try:
        return assemble(policy, blocking, found.period, found.timings, found.departures, links)
    except PlanError:
        return None
