"""Which candidates of `auto` are so slow that another turn of theirs would tell nothing. Ours.

Where communication takes several times as long as computing, a step of one candidate takes several
times as long as that of another, and trying all of them equally often is what trials cost most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from deft_horovod import policies
from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.plan import Plan
from deft_horovod.plan.rules import unit_elements
from deft_horovod.policies.base import Request
from deft_horovod.profile import Profile
from deft_horovod.runtime.decide.trials.contenders import Who
from deft_horovod.solver.predict.timeline import simulate

FEWEST_STEPS: Final = 3  # of each; fewer may be apart by chance
# A machine that does other work for a moment seldom makes a whole round so much slower.
_FAR: Final = 1.25


@dataclass(frozen=True)
class StepRange:
    """Of one candidate's steps."""

    shortest_us: float
    longest_us: float = math.inf


def exact_ranges(
    names: Iterable[Who], config: Config, profile: Profile | None, plan: Plan | None
) -> dict[Who, StepRange]:
    """Of candidates by which all bytes travel as they are and in time: what their plans are
    predicted to take. None where that is not known. `plan`: any of the same parameters."""
    if profile is None or profile.link is None or plan is None:
        return {}
    parameters = _parameters(plan)
    if len(parameters) != len(profile.ready_order):  # some are sparse
        return {}
    request = Request(parameters, profile, config)
    plans = {who: policies.get(who[0]).plan(request) for who in names}
    return {who: StepRange(simulate(plan, profile).step_us) for who, plan in plans.items()}


def _parameters(plan: Plan) -> tuple[Parameter, ...]:
    found = []
    for slot in plan.slots:
        arena = plan.arenas[slot.arena]
        elements = slot.end - slot.begin - unit_elements(arena.wire)
        found.append(Parameter(slot.name, elements, arena.dtype, arena.wire, arena.device))
    return tuple(found)


def far_behind(ranges: Mapping[Who, StepRange]) -> frozenset[Who]:
    """Those whose shortest step takes far longer than the longest one of another."""
    limit_us = _FAR * min(one.longest_us for one in ranges.values())
    return frozenset(who for who, one in ranges.items() if one.shortest_us > limit_us)
