"""How much late updates may cost, by policy and option."""

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.preserver.budget import budget


def test_only_who_does_not_choose_a_policy_has_a_budget():
    assert budget("auto", Config()) == 0.02
    assert budget("auto", Config(accuracy_budget=0.5)) == 0.5
    for name in policies.registry():
        if name != "auto":
            assert budget(name, Config()) is None
            assert budget(name, Config(accuracy_budget=0.0)) == 0.0
