import pytest

from deft_horovod.config import Config
from deft_horovod.policies.limits import limits


@pytest.mark.parametrize(
    ("policy", "options", "expected"),
    [
        ("least_stale", {}, (0, 1)),
        ("deft", {}, (1, 4)),
        ("deft", {"max_merge": 2}, (1, 2)),
        ("auto", {"max_delay": 1}, (1, 1)),
        ("auto", {"max_merge": 3}, (0, 3)),
    ],
)
def test_limits_are_the_options_or_what_the_policy_takes_for_granted(policy, options, expected):
    found = limits(policy, Config(**options))
    assert (found.max_delay, found.max_merge) == expected
    assert found.late == (expected != (0, 1))
