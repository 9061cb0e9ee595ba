import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.policies.measured import MeasuredPolicy
from tests.unit.support.planning import requests

NAMES = sorted(n for n, p in policies.registry().items() if isinstance(p, MeasuredPolicy))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_before_the_link_was_measured_it_does_what_bucket_does(name, data):
    request = data.draw(requests(linked=False))
    expected = policies.get("bucket").plan(request)
    assert policies.get(name).plan(request) == expected.model_copy(update={"policy": name})


def test_all_of_them_wait_for_a_whole_profile():
    for name in NAMES:
        policy = policies.get(name)
        assert policy.measures
        assert policy.uses_executor
        assert policy.replan_after_steps is None
