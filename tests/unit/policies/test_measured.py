import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.base.wire_format import SECOND_STAGE_BYTES
from deft_horovod.plan.formats import is_encoded
from deft_horovod.policies.measured import MeasuredPolicy
from tests.unit.support import models
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


@pytest.mark.parametrize("name", ["fewest_bytes", "least_stale"])
def test_a_second_stage_costs_what_a_message_takes_on_the_measured_link(name):
    asked = models.request("vgg19", 4, max_delay=0, max_merge=1)
    exact = policies.get(name).plan(asked)
    assert not is_encoded(exact)
    assert exact.second_stage_bytes == SECOND_STAGE_BYTES
    rounded = policies.get(name).plan(models.with_formats(asked, "equal"))
    assert is_encoded(rounded)
    (link,) = asked.profile.links
    assert rounded.second_stage_bytes == link.cost.start_up_bytes(asked.profile.size)
