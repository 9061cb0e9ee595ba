from hypothesis import given, settings

from deft_horovod import policies
from deft_horovod.plan import Plan
from deft_horovod.solver.timeline import simulate
from tests.unit.hard_requests import assert_within_limits, hard_requests
from tests.unit.planning import assert_carried_once

LEAST_STALE = policies.get("least_stale")


@settings(max_examples=15)
@given(hard_requests())
def test_plans_are_valid_within_limits_repeatable_and_not_below_the_bound(request):
    plan = LEAST_STALE.plan(request)
    assert plan == LEAST_STALE.plan(request)
    assert plan == Plan.from_json(plan.to_json())
    assert_carried_once(request.parameters, plan.arenas, plan.slots, plan.buckets)
    assert_within_limits(plan, request)
    prediction = plan.prediction
    assert prediction.step_us >= prediction.bound_us * (1 - 1e-9)
    assert prediction.bound_us >= prediction.compute_us * (1 - 1e-9)
    assert prediction.step_us == simulate(plan, request.profile).step_us
    assert prediction.status in ("optimal", "feasible", "greedy")
