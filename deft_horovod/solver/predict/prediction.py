"""Prediction: what a plan is expected to do, written into the plan."""

from __future__ import annotations

from deft_horovod.plan import Plan, Prediction
from deft_horovod.plan.staleness import staleness, updates_per_step
from deft_horovod.profile import Profile
from deft_horovod.solver.predict.timeline import simulate


def predict(
    plan: Plan, profile: Profile, *, bound_us: float | None = None, status: str = "feasible"
) -> Plan:
    """The same plan with its prediction. Without a better bound compute alone is one."""
    timeline = simulate(plan, profile)
    prediction = Prediction(
        compute_us=timeline.compute_us,
        step_us=timeline.step_us,
        bound_us=timeline.compute_us if bound_us is None else bound_us,
        status=status,
        staleness=staleness(plan),
        updates_per_step=updates_per_step(plan),
        profile=profile.hash(),
    )
    return plan.model_copy(update={"prediction": prediction})
