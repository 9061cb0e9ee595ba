from hypothesis import given

from deft_horovod import policies
from tests.unit.planning import requests


@given(requests(grouped=True))
def test_its_plans_are_those_of_bucket(request):
    plan = policies.get("auto").plan(request)
    assert plan == policies.get("bucket").plan(request)
    assert plan.policy == "bucket"
