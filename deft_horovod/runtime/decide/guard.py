"""The guard of one optimizer: keeps updates from being later than accuracy can afford.

It looks at the gradients of synchronous steps, lets the Preserver judge every plan that may be
late, and goes on looking while the plan runs. Where the gradients turn much faster than when the
plan was judged, or much slower, it asks for a new one. The deciding rank alone looks, since it
plans for all; the others are told what came of it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import horovod.torch as stock

from deft_horovod.plan import Plan
from deft_horovod.plan.staleness import staleness
from deft_horovod.policies.base import Policy, Request
from deft_horovod.preserver.budget import budget
from deft_horovod.preserver.cost import Gradients, affordable_turn, lateness
from deft_horovod.preserver.judge import preserved
from deft_horovod.preserver.judgement import Judgement
from deft_horovod.runtime.follower import Follower, Wish
from deft_horovod.runtime.measure.gradient_statistics import GradientStatistics
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.reduce.installed import Boundary

if TYPE_CHECKING:
    from deft_horovod.runtime.decide.planning import Brief

_LOG: Final = logging.getLogger("deft_horovod")
_FEWEST_STEPS: Final = 20  # to judge by
_WINDOW_STEPS: Final = 100  # after which a running plan is judged again
# A plan stays until its cost is twice the budget, or the turn has fallen by this factor; and for
# that many windows in a row. Else noise would bring a new plan, which costs seconds.
_OVER: Final = 2.0
_CALMER: Final = 1.5
_IN_A_ROW: Final = 2


class Guard(Follower[Boundary]):
    """`watch`: on the deciding rank."""

    def __init__(self, budget: float, correction: str, watch: GradientStatistics | None) -> None:
        self._wants = False  # another plan
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

    def judge(self, policy: Policy, request: Request) -> tuple[Plan, Judgement]:
        """The policy's plan, as late as can be afforded."""
        self._look()
        return preserved(policy, request, self._gradients, self._correction, self._budget)

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

    def follow(self, members: Sequence[NamedParameter], plan: Plan) -> GradientStatistics | None:
        """This runs from now on. Returns who has to see its gradients."""
        late = lateness(staleness(plan))
        self._turn_limit = affordable_turn(_OVER * self._budget, late, self._correction)
        if self._watch is not None:
            self._watch.follow(members, plan)
        return self._watch

    def end_boundary(self, at: Boundary) -> Wish:
        if not at.settled:
            return Wish.NOTHING
        self._look_again()
        return Wish.ANOTHER_PLAN if self._wants else Wish.NOTHING

    def _look_again(self) -> None:
        """A step with the settled plan has ended."""
        self._steps += 1
        judged = self._judgement
        if self._watch is None or judged is None or self._wants:
            return
        if self._steps == 1:
            self._watch.begin_anew()
        if self._steps < _WINDOW_STEPS:
            return
        self._steps = 0
        found = self._look()
        if found is None:
            return
        turn = found.turn
        faster = turn > self._turn_limit
        slower = judged.verdict != "kept" and (judged.turn is None or turn < judged.turn / _CALMER)
        self._strikes = self._strikes + 1 if faster or slower else 0
        self._wants = self._strikes >= (1 if judged.turn is None else _IN_A_ROW)
        if self._wants:
            _LOG.warning(
                "deft_horovod: accuracy: the gradient turns by %.2f a step now, when planning %s; "
                "a new plan is made",
                turn,
                "it was not known" if judged.turn is None else f"it was {judged.turn:.2f}",
            )

    def stats(self) -> dict[str, Any]:
        """What was judged; equal on all ranks."""
        judged = self._latest
        return {
            **(judged.model_dump() if judged is not None else {"budget": self._budget}),
            "verdicts": dict(self._verdicts),
        }

    def _look(self) -> Gradients | None:
        found = self._watch.seen(_FEWEST_STEPS) if self._watch is not None else None
        self._gradients = found or self._gradients
        return found


def guard_of(brief: Brief, correction: str, *, deciding: bool) -> Guard | None:
    """Where the brief's updates may be late and accuracy has a budget. `correction`: of those that
    are; `deciding`: whether this rank plans for all."""
    allowed = budget(brief.policy.name, brief.config)
    late = brief.limits.late and not brief.config.plan_file
    if allowed is None or not late or brief.purpose != "train":
        return None
    size, summed = brief.reduction.process_set.size(), brief.reduction.op == stock.Sum
    return Guard(allowed, correction, GradientStatistics(size, summed=summed) if deciding else None)
