import pytest

from deft_horovod import policies
from deft_horovod.errors import ConfigError


def test_names_are_keys_and_summaries_fit_a_line():
    for name, policy in policies.registry().items():
        assert policy.name == name
        assert 0 < len(policy.summary) <= 80
        assert policies.get(name).name == name


def test_the_registry_does_not_change():
    with pytest.raises(TypeError):
        policies.registry()["mine"] = policies.get("wfbp")


def test_an_unknown_name_is_refused_with_all_names():
    with pytest.raises(ConfigError, match="did you mean 'bucket'") as caught:
        policies.get("buckets")
    assert ", ".join(policies.registry()) in str(caught.value)
    with pytest.raises(ConfigError, match="choose one of these"):
        policies.get("???")
