from hypothesis import given

from deft_horovod import policies
from tests.unit.support.planning import requests


@given(requests())
def test_its_plans_are_those_of_least_stale(request):
    plan = policies.get("auto").plan(request)
    assert plan.policy == "auto"
    expected = policies.get("least_stale").plan(request)
    assert plan.model_copy(update={"policy": "least_stale"}) == expected
