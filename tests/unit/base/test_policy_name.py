import pytest

from deft_horovod.base.policy_name import POLICIES, known_policy
from deft_horovod.policies import registry


def test_the_policies_are_those_of_the_registry():
    assert tuple(registry()) == POLICIES


def test_a_name_is_known_or_refused_with_the_nearest():
    assert [known_policy(name) for name in POLICIES] == list(POLICIES)
    with pytest.raises(ValueError, match="did you mean 'bucket'"):
        known_policy("buckett")
    with pytest.raises(ValueError, match=r"no such policy$"):
        known_policy("qqqq")
