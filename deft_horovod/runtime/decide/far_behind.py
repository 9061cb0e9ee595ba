"""Which candidates of `auto` are so slow that another turn of theirs would tell nothing. Ours.

Where communication takes several times as long as computing, a step of one candidate takes several
times as long as that of another, and trying all of them equally often is what trials cost most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from deft_horovod.plan import Plan
from deft_horovod.plan.contents import bucket_bytes
from deft_horovod.profile import Profile
from deft_horovod.runtime.decide.contenders import Who

FEWEST_STEPS: Final = 3  # of each; fewer may be apart by chance
# A machine that does other work for a moment seldom makes a whole round so much slower.
_FAR: Final = 1.5


@dataclass(frozen=True)
class StepRange:
    """Of one candidate's steps."""

    shortest_us: float
    longest_us: float = math.inf


def exact_ranges(
    names: Iterable[Who], profile: Profile | None, plan: Plan | None
) -> dict[Who, StepRange]:
    """Of candidates by which all bytes of a plan travel as they are and in time: a step takes at
    least what the link takes for them. None where that is not known."""
    if profile is None or profile.link is None or plan is None:
        return {}
    link_us = profile.link.beta_us_per_byte * sum(bucket_bytes(plan))
    return dict.fromkeys(names, StepRange(link_us))


def far_behind(ranges: Mapping[Who, StepRange]) -> frozenset[Who]:
    """Those whose shortest step takes far longer than the longest one of another."""
    limit_us = _FAR * min(one.longest_us for one in ranges.values())
    return frozenset(who for who, one in ranges.items() if one.shortest_us > limit_us)
