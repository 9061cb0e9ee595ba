"""Refine: choices become a plan, which is played through and corrected.

The demand criterion lets messages interrupt each other; the link does not. So a message can come in
the way of a more urgent one, and compute waits although the demand fits. What the timeline shows is
corrected as long as that shortens the step: the message that is waited for leaves before others
that are less urgent, or, at the price of some staleness, its block gets a later deadline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from deft_horovod.base.wire_format import EXACT
from deft_horovod.errors import PlanError
from deft_horovod.plan import Plan
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.solver.assemble import Departure, Timing, assemble, reordered
from deft_horovod.solver.least_stale.message_order import sequence
from deft_horovod.solver.messages.blocks import Blocking
from deft_horovod.solver.predict.timeline import (
    BucketMoments,
    Timeline,
    bucket_moments,
    simulate,
)
from deft_horovod.solver.problem import Choice, Problem

_ROUNDS: Final = 12
# How far forward in the order a message that is waited for is moved at most.
_PLACES: Final = 6
# What is too short to be worth a change, as a share of a step.
_GAIN: Final = 0.001


@dataclass(frozen=True)
class DraftSearch:
    """What all drafts of one search share."""

    policy: str
    blocking: Blocking
    problem: Problem
    links: tuple[str, ...]
    judge: Profile  # with link times as long as the margin makes them

    @cached_property
    def moments(self) -> BucketMoments:
        """Whatever is chosen, buckets are ready and needed at the same ones."""
        return bucket_moments(self.blocking.layout.slots, self.blocking.buckets, self.judge)


@dataclass(frozen=True)
class Draft:
    setting: DraftSearch
    period: int
    choices: tuple[Choice, ...]
    departures: tuple[Departure, ...]
    plan: Plan
    timeline: Timeline

    @property
    def exposed_us(self) -> float:
        return self.timeline.exposed_us


def with_margin(profile: Profile, margin: float) -> Profile:
    """The same measurements with links that are slower by the margin."""
    return profile.model_copy(
        update={
            "links": tuple(
                link.model_copy(
                    update={
                        "cost": _slower(link.cost, margin),
                        "busy_cost": link.busy_cost and _slower(link.busy_cost, margin),
                        "formats": tuple(
                            one.model_copy(update={"cost": _slower(one.cost, margin)})
                            for one in link.formats
                        ),
                    }
                )
                for link in profile.links
            )
        }
    )


def _slower(cost: LinkCost, margin: float) -> LinkCost:
    return cost.model_copy(
        update={
            "alpha_us": cost.alpha_us / margin,
            "beta_us_per_byte": cost.beta_us_per_byte / margin,
            "cycle_us": cost.cycle_us / margin,
        }
    )


def refine(
    setting: DraftSearch, period: int, choices: Sequence[Choice], exposed_us: float
) -> Draft:
    """`exposed_us`: what the demand promises; there is nothing to gain beyond it."""
    draft = _draft(setting, period, tuple(choices))
    enough_us = exposed_us + _GAIN * draft.timeline.compute_us
    for _ in range(_ROUNDS):
        if draft.exposed_us <= enough_us or not draft.timeline.waits:
            break
        better = _better(draft)
        if better is None:
            break
        draft = better
    return draft


def _draft(setting: DraftSearch, period: int, choices: tuple[Choice, ...]) -> Draft:
    """In the better of the two orders."""
    eager, patient = (
        tuple(
            Departure(m.item, m.bucket, m.step, m.link)
            for m in sequence(setting.problem, choices, period, patient=patient)
        )
        for patient in (False, True)
    )
    timings = [Timing.of(choice, period) for choice in choices]
    blocking = setting.blocking.encoded([choice.format for choice in choices])
    plan = assemble(setting.policy, blocking, period, timings, eager, setting.links)
    timeline = simulate(plan, setting.judge, setting.moments)
    draft = Draft(setting, period, choices, eager, plan, timeline)
    if patient == eager:
        return draft
    place = {departure: at for at, departure in enumerate(eager)}
    other = _reordered(draft, [place[departure] for departure in patient])
    return min(draft, other, key=lambda draft: draft.exposed_us)


def _reordered(draft: Draft, order: Sequence[int]) -> Draft:
    """With the same messages in this order of their places."""
    plan = reordered(draft.plan, draft.departures, order)
    return replace(
        draft,
        departures=tuple(draft.departures[place] for place in order),
        plan=plan,
        timeline=simulate(plan, draft.setting.judge, draft.setting.moments),
    )


def _better(draft: Draft) -> Draft | None:
    """The first correction of the longest wait that shortens the step."""
    enough_us = draft.exposed_us - _GAIN * draft.timeline.compute_us
    wait = max(draft.timeline.waits, key=lambda w: w.ends_us - w.begins_us)
    late = next(
        place for place, task in enumerate(draft.plan.tasks) if task.generation == wait.generation
    )
    found = [*_moved(draft, late)]
    best = min(found, key=lambda other: other.exposed_us, default=draft)
    if best.exposed_us <= enough_us:
        return best
    for choices in _relaxed(draft, draft.departures[late].block):
        other = _draft(draft.setting, draft.period, choices)
        if other.exposed_us <= enough_us:
            return other
    return None


def _moved(draft: Draft, late: int) -> Iterator[Draft]:
    """The message at this place leaves earlier on its link."""
    order = list(range(len(draft.departures)))
    link = draft.departures[late].link
    place = late
    for _ in range(_PLACES):
        before = [at for at in range(place) if draft.departures[order[at]].link == link]
        if not before:
            return
        order.insert(before[-1], order.pop(place))
        place = before[-1]
        try:
            yield _reordered(draft, order)
        except PlanError:  # what it passed is due before it comes
            return


def _relaxed(draft: Draft, block: int) -> Iterator[tuple[Choice, ...]]:
    """The block is due later, at its gate or after a step, or it takes fewer bytes."""
    problem, choices = draft.setting.problem, draft.choices
    choice = choices[block]
    changes = []
    if not choice.gated and not choice.delay and problem.items[block].need_us is not None:
        changes.append(replace(choice, gated=True))
    if not choice.staleness:
        finer = problem.items[block].formats
        finer = finer[finer.index(choice.format) + 1 :] if choice.format in finer else finer
        changes += [replace(choice, format=one) for one in finer]
    longest = problem.limits.max_delay if problem.items[block].may_be_late else 0
    if choice.delay < min(longest, choice.merged - choice.end_step):
        late = replace(choice, gated=False, delay=choice.delay + 1, format=EXACT)
        changes.append(late)
    for change in changes:
        yield (*choices[:block], change, *choices[block + 1 :])
