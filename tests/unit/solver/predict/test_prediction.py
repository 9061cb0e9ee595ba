from hypothesis import given

from deft_horovod.plan import Plan
from deft_horovod.plan.staleness import staleness, updates_per_step
from deft_horovod.policies import get
from deft_horovod.profile import Profile
from deft_horovod.solver.predict.prediction import predict
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.planning import requests


@given(requests(linked=True))
def test_it_says_what_the_timeline_shows(request):
    plan = get("bucket").plan(request)
    predicted = predict(plan, request.profile, bound_us=17.0, status="optimal")
    timeline = simulate(plan, request.profile)
    prediction = predicted.prediction
    assert prediction.step_us == timeline.step_us
    assert prediction.compute_us == timeline.compute_us
    assert prediction.exposed_us == timeline.exposed_us
    assert (prediction.bound_us, prediction.status) == (17.0, "optimal")
    assert prediction.staleness == staleness(plan)
    assert prediction.updates_per_step == updates_per_step(plan)
    assert prediction.profile == request.profile.hash()
    assert predicted.model_copy(update={"prediction": None}) == plan
    assert Plan.from_json(predicted.to_json()) == predicted


def test_compute_is_the_bound_that_always_holds():
    prediction = predict(Plan(policy="stock"), Profile.assumed(2)).prediction
    assert prediction.bound_us == prediction.step_us == prediction.compute_us == 6.0
    assert prediction.gap == 0.0
