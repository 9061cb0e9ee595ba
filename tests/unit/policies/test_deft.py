import pytest

from deft_horovod.errors import ConfigError
from deft_horovod.policies import get
from deft_horovod.policies.deft import Deft
from tests.unit.support.models import request


def classes(plan):
    return {(entry.delay, entry.merged) for entry in plan.prediction.staleness}


def test_it_is_registered_and_measures_first():
    policy = get("deft")
    assert isinstance(policy, Deft)
    assert policy.measures
    assert policy.uses_executor
    assert not policy.gates
    assert policy.replan_after_steps is None


def test_without_limits_it_delays_by_one_step_and_merges_four():
    plan = get("deft").plan(request("vgg19", 4.0))
    assert plan.policy == "deft"
    assert {merged for _, merged in classes(plan)} == {4}
    assert {delay for delay, _ in classes(plan)} <= {0, 1}


def test_limits_are_those_of_the_configuration():
    plan = get("deft").plan(request("vgg19", 4.0, max_delay=2, max_merge=2))
    assert {merged for _, merged in classes(plan)} == {2}
    assert max(delay for delay, _ in classes(plan)) <= 2


def test_synchronous_training_is_refused_with_the_alternatives():
    with pytest.raises(ConfigError, match="max_delay = 0") as caught:
        get("deft").plan(request("vgg19", 1.0, max_delay=0))
    assert "'least_stale', 'bucket' or 'priority'" in str(caught.value)


def test_before_the_link_is_measured_it_does_what_bucket_does():
    asked = request("gpt2", 1.0)
    unmeasured = type(asked)(
        asked.parameters, asked.profile.model_copy(update={"links": ()}), asked.config
    )
    plan, bucket = get("deft").plan(unmeasured), get("bucket").plan(unmeasured)
    assert plan.policy == "deft"
    assert plan.model_copy(update={"policy": "bucket"}) == bucket


def test_the_same_request_gives_the_same_plan():
    asked = request("gpt2", 2.0, (1.0, 0.4))
    assert get("deft").plan(asked).hash() == get("deft").plan(asked).hash()
