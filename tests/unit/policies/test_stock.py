from hypothesis import given

from deft_horovod import policies
from tests.unit.support.planning import requests


@given(requests(grouped=True))
def test_nothing_travels_through_the_executor(request):
    stock = policies.get("stock")
    plan = stock.plan(request)
    assert not stock.uses_executor
    assert plan.policy == "stock"
    assert (plan.links, plan.arenas, plan.slots, plan.buckets, plan.tasks) == ((),) * 5
