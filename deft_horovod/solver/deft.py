"""deft: of the plans that DeFT's scheme makes, the one that is predicted to be the best.

The scheme itself is in `windows`. It is played for messages of a few sizes, on the first link alone
and on all of them, and, where it does not repeat itself or leaves compute waiting, at a few cadences
(see `cadence`). What counts is what the timeline shows: first the time that a step waits for
communication, then how often parameters are updated, then how many links it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.errors import PlanError
from deft_horovod.parameter import Parameter
from deft_horovod.plan import Plan
from deft_horovod.profile import Profile
from deft_horovod.solver.assemble import assemble
from deft_horovod.solver.blocks import ALPHA_SHARE, WINDOW_SHARE, Blocking, block_up
from deft_horovod.solver.bounds import bound_us
from deft_horovod.solver.cadence import cadences
from deft_horovod.solver.prediction import predict
from deft_horovod.solver.problem import Limits, Problem, problem_of
from deft_horovod.solver.staleness import updates_per_step
from deft_horovod.solver.timeline import simulate
from deft_horovod.solver.windows import Schedule, schedule

# (alpha share, window share), see `blocks`.
_SIZES: Final = ((ALPHA_SHARE, WINDOW_SHARE), (0.25, 0.15), (0.02, 0.7))
# Waiting that is shorter than this share of a step counts as none.
_TOLERANCE: Final = 0.002


@dataclass(frozen=True)
class _Found:
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
    best: _Found | None = None
    for links in _link_sets(profile):
        found = _best_on(policy, parameters, profile, limits, links)
        if best is None or found.key < best.key:
            best = found
        if best.is_best:
            break
    assert best is not None  # noqa: S101 (there is a first link)
    bound = bound_us(parameters, profile, limits)
    return predict(best.plan, profile, bound_us=bound, status=best.status)


def _link_sets(profile: Profile) -> list[tuple[int, ...]]:
    """The first link, and all of them."""
    alone = (0,)
    return [alone] if len(profile.links) == 1 else [alone, tuple(range(len(profile.links)))]


def _best_on(
    policy: str,
    parameters: Sequence[Parameter],
    profile: Profile,
    limits: Limits,
    links: tuple[int, ...],
) -> _Found:
    best: _Found | None = None
    names = [profile.links[link].name for link in links]
    for blocking in _blockings(parameters, profile):
        problem = problem_of(blocking, profile, limits, links)
        for found, status in _schedules(problem):
            for plan in _plans(policy, blocking, found, names):
                exposed_us = simulate(plan, profile).exposed_us
                hidden = exposed_us <= _TOLERANCE * profile.compute_us
                entry = _Found(plan, exposed_us, hidden, status, len(links))
                if best is None or entry.key < best.key:
                    best = entry
                if hidden:
                    break
            if best is not None and best.is_hidden:
                return best
    assert best is not None  # noqa: S101 (a cadence can always be played)
    return best


def _blockings(parameters: Sequence[Parameter], profile: Profile) -> Iterator[Blocking]:
    seen: list[Blocking] = []
    for alpha_share, window_share in _SIZES:
        blocking = block_up(parameters, profile, alpha_share=alpha_share, window_share=window_share)
        if blocking not in seen:
            seen.append(blocking)
            yield blocking


def _schedules(problem: Problem) -> Iterator[tuple[Schedule, str]]:
    found = schedule(problem)
    if found is not None:
        yield found, "feasible"
    for cadence in cadences(problem):
        found = schedule(problem, cadence)
        if found is not None:
            yield found, "cadence"


def _plans(
    policy: str, blocking: Blocking, found: Schedule, links: Sequence[str]
) -> Iterator[Plan]:
    """With every message held back for its window, and with each as soon as its turn comes: so that
    the link does not idle for the rest of a window into which no message fits."""
    free = [
        type(departure)(departure.block, departure.bucket, departure.step, departure.link)
        for departure in found.departures
    ]
    for departures in (found.departures, free):
        try:
            yield assemble(policy, blocking, found.period, found.timings, departures, links)
        except PlanError:  # a window of one link's list is later than a deadline behind it
            continue
