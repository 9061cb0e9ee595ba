"""Judgement: what the Preserver made of the limits, for stats, logs and people."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from deft_horovod.base.record import Count, Part
from deft_horovod.plan import Plan
from deft_horovod.plan.staleness import staleness
from deft_horovod.preserver.budget import DEFAULT_BUDGET
from deft_horovod.preserver.cost import affordable_turn, lateness

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Judgement(Part):
    """Costs are shares of the loss, as expected."""

    budget: Share
    turn: Share | None = None  # of the gradients; None: not known yet
    steps: Count = 0  # that it was measured over
    asked_cost: Share | None = None  # of the plan that the options allow
    cost: Share = 0.0  # of the plan that runs
    verdict: Literal["kept", "limited", "refused"]

    def describe(self) -> str:
        """One line."""
        if self.turn is None:
            return "updates stay synchronous until enough gradients were measured"
        known = f"by {self.turn:.2f} a step" if self.turn else "too little to be told from noise"
        measured = f"the gradient turns {known} (over {self.steps} steps)"
        asked = f"late updates are expected to cost {_percent(self.asked_cost or 0.0)} of the loss"
        then = {
            "kept": f"within the budget of {_percent(self.budget)}",
            "limited": f"over the budget of {_percent(self.budget)}: fewer are late, "
            f"for {_percent(self.cost)}",
            "refused": f"over the budget of {_percent(self.budget)}: all stay synchronous",
        }
        return f"{measured}; {asked}, {then[self.verdict]}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %"


def affordable_text(plan: Plan, correction: str, budget: float = DEFAULT_BUDGET) -> list[str]:
    """For a plan that may be late: until when the budget holds."""
    late = lateness(staleness(plan))
    if not late.any:
        return []
    turn = affordable_turn(budget, late, correction)
    limit = f"while the gradient turns by less than {turn:.2f} a step" if turn else "in no case"
    if turn == math.inf:
        limit = "however the gradient turns"
    return [f"accuracy: within a budget of {_percent(budget)} of the loss {limit}"]
