"""Least stale: the plan that hides the communication with as little harm as possible.

Everything that is decided is compared as plans in the end, played through by `timeline`: several
ways to make messages, with and without the second link, several periods. The goals, in this order:

1. exposed time, as predicted;
2. exposed time if links are slower by the margin;
3. harm: staleness and rounding, weighted;
4. updates per step (the more the better), messages, links.

Times that differ by less than can be measured count as equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.base.parameter import Parameter
from deft_horovod.base.period import LONGEST_PERIOD
from deft_horovod.plan import Plan
from deft_horovod.plan.staleness import mean_staleness, staleness, updates_per_step
from deft_horovod.profile import Profile
from deft_horovod.solver.least_stale.greedy import Solution, choose_greedily
from deft_horovod.solver.least_stale.link_time import make_grid
from deft_horovod.solver.least_stale.options import make_options
from deft_horovod.solver.least_stale.refine import DraftSearch, refine, with_margin
from deft_horovod.solver.links import link_sets
from deft_horovod.solver.messages.blocks import (
    COARSE_SHARES,
    DEFAULT_SHARES,
    FINE_SHARES,
    Blocking,
    Shares,
    distinct_blockings,
)
from deft_horovod.solver.predict.bounds import bound_us
from deft_horovod.solver.predict.prediction import predict
from deft_horovod.solver.predict.timeline import simulate
from deft_horovod.solver.problem import Limits, Problem, margin_of, problem_of

# Of the messages to try; the last ones are for links that are overcharged.
_SHARES: Final = (
    DEFAULT_SHARES,
    FINE_SHARES,
    Shares(0.2, 0.5),
    Shares(0.1, 0.5),
    COARSE_SHARES,
    Shares(0.01, 1.5),
)
_PERIODS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, LONGEST_PERIOD)
# Differences in the step time below this share of it count as none.
_TOLERANCE: Final = 0.002
_EXACT_IN_TIME: Final = Limits(max_delay=0, max_merge=1)
# How many of the most promising choices become plans, and how many of these are searched further.
_PLANNED: Final = 4
_SEARCHED: Final = 2

# Of each block of a blocking, how much a step of staleness hurts.
Weights = Callable[[Blocking], Sequence[float]]


@dataclass(frozen=True)
class Candidate:
    plan: Plan
    exposed_us: float
    exposed_with_margin_us: float
    harm: float
    status: str

    @property
    def rest(self) -> tuple[float, int, int]:
        links = len({task.link for task in self.plan.tasks})
        return -updates_per_step(self.plan), links, len(self.plan.tasks) // self.plan.period


@dataclass(frozen=True)
class _Solved:
    setting: DraftSearch
    solution: Solution

    @property
    def harm(self) -> float:
        total = sum(item.weight for item in self.setting.problem.items)
        return self.solution.harm / total if total > 0.0 else 0.0

    @property
    def is_hidden(self) -> bool:
        return self.solution.exposed_us <= _TOLERANCE * self.setting.problem.step_us

    @property
    def key(self) -> tuple[int, float, int, float]:
        tolerance_us = _TOLERANCE * max(self.setting.problem.step_us, 1e-9)
        exposed = int(self.solution.exposed_us / tolerance_us)
        return exposed, self.harm, self.setting.problem.links, self.solution.exposed_us


def solve(
    policy: str,
    parameters: Sequence[Parameter],
    profile: Profile,
    limits: Limits,
    others: Iterable[Plan] = (),
    late: Callable[[], Plan] | None = None,
    weights: Weights | None = None,
) -> Plan:
    """The best plan, with its prediction. `others`: exact plans in time to compare with, so that
    the result is never predicted to be slower than one of them; they are only asked for where they
    may be as fast. `late`: makes one more, within the limits, for when not everything can be
    hidden. Expects a measured link."""
    # OR-Tools takes a while to load, and most ranks and policies never need it.
    from deft_horovod.solver.least_stale.exact import improve

    margin = margin_of(profile, sum(parameter.bytes for parameter in parameters), limits)
    judge = with_margin(profile, margin)
    found = [
        _best_period(_setting(policy, blocking, profile, (judge, margin), limits, links, weights))
        for blocking in distinct_blockings(parameters, profile, _SHARES)
        for links in link_sets(profile, only_if_faster=True)
    ]
    planned = [
        (_candidate(entry.setting, entry.solution, judge, profile), entry)
        for entry in sorted(found, key=lambda entry: entry.key)[:_PLANNED]
    ]
    candidates = [candidate for candidate, _ in planned]
    for _ in range(min(_SEARCHED, len(planned))):
        best = choose([candidate for candidate, _ in planned], profile)
        setting, start = next((e.setting, e.solution) for c, e in planned if c is best)
        planned = [(c, entry) for c, entry in planned if c is not best]
        # Of equal ones the first is chosen: the one of which it is known how good it is.
        solution = improve(start.options, start)
        candidates.insert(0, _candidate(setting, solution, judge, profile))
    least_us = min(candidate.exposed_us for candidate in candidates)
    near = others if _exact_may_take(least_us, parameters, profile) else ()
    known = [_known(plan, judge, profile) for plan in near]
    # Not by the smallest difference slower than any of these.
    limit_us = min((other.exposed_us for other in known), default=math.inf)
    candidates = [c for c in [*candidates, *known] if c.exposed_us <= limit_us]
    best = choose(candidates, profile)
    if late is not None and best.exposed_us > _TOLERANCE * profile.compute_us:
        best = choose([best, _known(late(), judge, profile)], profile)
    bound = bound_us(parameters, profile, limits)
    plan = best.plan.model_copy(update={"policy": policy})
    return predict(plan, profile, bound_us=bound, status=best.status)


def _exact_may_take(exposed_us: float, parameters: Sequence[Parameter], profile: Profile) -> bool:
    """Whether a plan that is exact and in time may expose no more than that, as far as is known:
    bounds do not count what halves of an all-reduce were measured to cost."""
    exact_us = bound_us(parameters, profile, _EXACT_IN_TIME) - profile.compute_us
    halves = any(link.scatter_cost or link.gather_cost for link in profile.links)
    return halves or exact_us <= exposed_us + _TOLERANCE * profile.compute_us


def choose(candidates: Sequence[Candidate], profile: Profile) -> Candidate:
    """By the goals, one after the other."""
    tolerance_us = _TOLERANCE * profile.compute_us
    left = list(candidates)
    least_us = min(c.exposed_us for c in left)
    left = [c for c in left if c.exposed_us <= least_us + tolerance_us]
    least_us = min(c.exposed_with_margin_us for c in left)
    left = [c for c in left if c.exposed_with_margin_us <= least_us + tolerance_us]
    return min(left, key=lambda c: (c.harm, c.rest))


def _candidate(
    setting: DraftSearch, solution: Solution, judge: Profile, profile: Profile
) -> Candidate:
    options = solution.options
    choices = [options.choices[option] for option in solution.chosen]
    draft = refine(setting, options.grid.period, choices, solution.exposed_us)
    items = setting.problem.items
    total = sum(item.weight for item in items)
    harm = sum(i.weight * c.harm for i, c in zip(items, draft.choices, strict=True))
    exposed = _exposed_us(draft.plan, profile, judge)
    return Candidate(draft.plan, *exposed, harm / total if total > 0.0 else 0.0, solution.status)


def _known(plan: Plan, judge: Profile, profile: Profile) -> Candidate:
    """One that was made elsewhere."""
    status = plan.prediction.status if plan.prediction is not None else "greedy"
    late = mean_staleness(staleness(plan))  # other plans round nothing
    return Candidate(plan, *_exposed_us(plan, profile, judge), late, status)


def _exposed_us(plan: Plan, profile: Profile, judge: Profile) -> tuple[float, float]:
    return simulate(plan, profile).exposed_us, simulate(plan, judge).exposed_us


def _setting(
    policy: str,
    blocking: Blocking,
    profile: Profile,
    judged: tuple[Profile, float],
    limits: Limits,
    links: tuple[int, ...],
    weights: Weights | None,
) -> DraftSearch:
    judge, margin = judged
    weighted = None if weights is None else weights(blocking)
    return DraftSearch(
        policy=policy,
        blocking=blocking,
        problem=problem_of(blocking, profile, limits, links, weighted, margin),
        links=tuple(profile.links[link].name for link in links),
        judge=judge,
    )


def _best_period(setting: DraftSearch) -> _Solved:
    """The shortest period that hides everything, else the least exposed."""
    best: _Solved | None = None
    problem = setting.problem
    longest = problem.limits.max_merge
    for period in sorted(p for p in {*_PERIODS, longest} if p <= longest):
        if period < longest and _is_too_short(problem, period):
            continue
        options = make_options(make_grid(problem, period))
        found = _Solved(setting, choose_greedily(options))
        if best is None or found.key < best.key:
            best = found
        if found.is_hidden:
            break
    assert best is not None  # noqa: S101 (the longest period was tried)
    return best


def _is_too_short(problem: Problem, period: int) -> bool:
    """Whether the links could not carry everything even if all was merged over the period."""
    load_us = problem.least_load_us() * problem.limits.max_merge / period
    return load_us > problem.margin * problem.step_us
