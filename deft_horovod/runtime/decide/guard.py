"""The guard of one optimizer: keeps updates from being later than accuracy can afford, and from
being rounded more.

It looks at the gradients of synchronous steps, lets the Preserver judge every plan that may be
late, and goes on looking while the plan runs. Where the gradients turn much faster than when the
plan was judged, or much slower, it asks for a new one. The deciding rank alone looks, since it
plans for all; the others are told what came of it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from deft_horovod.peers import stock
from deft_horovod.plan import Plan
from deft_horovod.plan.staleness import staleness
from deft_horovod.policies.base import Policy, Request
from deft_horovod.preserver.budget import budget
from deft_horovod.preserver.cost import Gradients, affordable_turn, lateness
from deft_horovod.preserver.judge import preserved
from deft_horovod.preserver.judgement import Judgement
from deft_horovod.preserver.rounding import TOLERATED
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.decide.phases import LOOKS
from deft_horovod.runtime.decide.rounding_guard import RoundingGuard
from deft_horovod.runtime.follower import Follower, Wish
from deft_horovod.runtime.measure.gradient_statistics import GradientStatistics
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.reduce.installed import Boundary
from deft_horovod.runtime.reduce.planned import PlannedReducer

_LOG: Final = logging.getLogger("deft_horovod")
_FEWEST_STEPS: Final = 20  # to judge by
_WINDOW_STEPS: Final = 100  # after which a running plan is judged again
# A plan stays until its cost is twice the budget, or the turn has fallen by this factor; and for
# that many windows in a row. Else noise would bring a new plan, which costs seconds.
_OVER: Final = 2.0
_CALMER: Final = 1.5
_IN_A_ROW: Final = 2


class Guard(Follower[Boundary]):
    """`budget`: of late updates; None: there is no limit. `watch`: on the deciding rank.
    `rounding`: where wire formats are allowed."""

    def __init__(
        self,
        budget: float | None,
        correction: str,
        watch: GradientStatistics | None,
        rounding: RoundingGuard | None = None,
    ) -> None:
        self._wants = False  # another plan
        self._rounding = rounding
        self._budget = budget
        self._correction = correction
        self._watch = watch
        self._gradients: Gradients | None = None  # the latest that were measured
        self._judgement: Judgement | None = None  # of the plan that runs
        self._latest: Judgement | None = None
        self._verdicts: Counter[str] = Counter()
        self._turn_limit = 0.0  # of the plan that runs
        self._steps = 0  # in this window
        self._strikes = 0

    def judge(self, policy: Policy, request: Request) -> tuple[Plan, Judgement | None]:
        """The policy's plan, as late and as much rounded as can be afforded. No judgement: nothing
        of it may be late anyway, or there is no limit."""
        self._look()
        if self._rounding is not None:
            request = self._rounding.narrow(request, self._gradients)
        if self._budget is None or (request.limits is not None and not request.limits.late):
            return policy.plan(request), None
        return preserved(policy, request, self._gradients, self._correction, self._budget)

    def foreseen(self, request: Request) -> Request:
        """What the policy will be asked first to judge this, if gradients stay as they are."""
        return request if self._rounding is None else self._rounding.narrowed(request)

    def judged(self, judgement: Judgement | None) -> None:
        """What came of the plan that is about to run; None: it may not be late anyway."""
        self._wants = False
        self._steps = self._strikes = 0
        self._judgement = judgement
        if judgement is None:
            return
        self._latest = judgement
        self._verdicts[judgement.verdict] += 1
        late = judgement.asked_cost or judgement.turn == 0.0 or judgement.verdict != "kept"
        if self._watch is not None and late:
            _LOG.warning("deft_horovod: accuracy: %s", judgement.describe())

    @property
    def allows_all(self) -> bool:
        """Whether what was judged last may be as late as was asked for; equal on all ranks."""
        return self._latest is not None and self._latest.verdict == "kept"

    def follow(self, members: Sequence[NamedParameter], plan: Plan) -> GradientStatistics | None:
        """This runs from now on. Returns who has to see its gradients."""
        if self._budget is not None:
            late = lateness(staleness(plan))
            self._turn_limit = affordable_turn(_OVER * self._budget, late, self._correction)
        if self._watch is not None:
            self._watch.follow(members, plan)
        return self._watch

    def end_boundary(self, at: Boundary) -> Wish:
        if not at.settled:
            return Wish.NOTHING
        self._look_again(at.planned)
        return Wish.ANOTHER_PLAN if self._wants else Wish.NOTHING

    def _look_again(self, planned: PlannedReducer | None) -> None:
        """A step with the settled plan has ended."""
        self._steps += 1
        judged, rounding = self._judgement, self._rounding
        if self._watch is None or self._wants or (judged is None and rounding is None):
            return
        if self._steps == 1:
            self._watch.begin_anew()
        if self._steps == LOOKS:  # looking takes time
            self._watch.rest()
        if self._steps < _WINDOW_STEPS:
            return
        self._steps = 0
        found = self._look()
        if found is None:
            return
        if judged is not None:
            self._wants = self._has_turned(judged, found.turn)
        if rounding is not None and planned is not None:
            self._wants = rounding.wants(planned.rounding_errors(), found) or self._wants

    def _has_turned(self, judged: Judgement, turn: float) -> bool:
        """Whether the gradients call for another plan."""
        faster = turn > self._turn_limit
        slower = judged.verdict != "kept" and (judged.turn is None or turn < judged.turn / _CALMER)
        self._strikes = self._strikes + 1 if faster or slower else 0
        wants = self._strikes >= (1 if judged.turn is None else _IN_A_ROW)
        if wants:
            _LOG.warning(
                "deft_horovod: accuracy: the gradient turns by %.2f a step now, when planning %s; "
                "a new plan is made",
                turn,
                "it was not known" if judged.turn is None else f"it was {judged.turn:.2f}",
            )
        return wants

    def stats(self) -> dict[str, Any]:
        """What was judged, equal on all ranks; what rounding adds, on the deciding one."""
        judged = self._latest
        return {
            **(judged.model_dump() if judged is not None else {"budget": self._budget}),
            "verdicts": dict(self._verdicts),
            **({"rounding": self._rounding.stats()} if self._rounding is not None else {}),
        }

    def _look(self) -> Gradients | None:
        found = self._watch.seen(_FEWEST_STEPS) if self._watch is not None else None
        self._gradients = found or self._gradients
        return found


def guard_of(brief: Brief, correction: str, *, deciding: bool) -> Guard | None:
    """Where the brief's updates may be late and accuracy has a budget, or wire formats are allowed.
    `correction`: of those that are late; `deciding`: whether this rank plans for all."""
    if brief.config.plan_file or brief.purpose != "train":
        return None
    limits = brief.limits
    allowed = budget(brief.policy.name, brief.config) if limits.late else None
    word = brief.config.accuracy if limits.formats else None
    rounding = RoundingGuard(TOLERATED[word]) if word is not None else None
    if allowed is None and rounding is None:
        return None
    size, summed = brief.reduction.process_set.size(), brief.reduction.op == stock.Sum
    watch = GradientStatistics(size, summed=summed) if deciding else None
    return Guard(allowed, correction, watch, rounding)
