from dataclasses import replace

import pytest

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.errors import ConfigError
from deft_horovod.policies.base import Request
from deft_horovod.policies.limits import limits, limits_of, narrowed, shares
from deft_horovod.profile import Profile
from deft_horovod.solver.problem import Limits


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


def test_options_make_nothing_late_that_is_exact_by_nature():
    options = Config(max_delay=2, max_merge=3)
    late = {name for name in policies.registry() if limits(name, options).late}
    assert late <= {"auto", "covap", "deft", "least_stale", "sapipe"}
    assert {"auto", "deft", "least_stale"} <= late


def test_a_share_may_be_late_where_the_policy_can_choose():
    options = Config(max_delay=1, late_share=0.25)
    for name in policies.registry():
        if shares(name):
            assert limits(name, options).late_share == 0.25
            assert not limits(name, Config(max_delay=1, late_share=0.0)).late
        elif limits(name, Config(max_delay=1)).late:
            with pytest.raises(ConfigError, match=r"late_share = 0\.25"):
                limits(name, options)


@pytest.mark.parametrize(("late", "sums"), [(True, True), (True, False), (False, False)])
def test_less_may_be_allowed_for_now(late, sums):
    now = narrowed(limits("deft", Config(max_merge=3)), late=late, sums=sums)
    assert (now.max_delay, now.max_merge) == (int(late), 3 if sums else 1)


def test_a_calm_rate_allows_a_step_unless_options_forbid_it():
    assert limits("auto", Config(), calm=True).max_delay == 1
    assert limits("auto", Config(max_delay=0), calm=True).max_delay == 0
    assert limits("deft", Config(max_delay=3), calm=True).max_delay == 3
    assert not limits("bucket", Config(), calm=True).late


@pytest.mark.parametrize("policy", ["least_stale", "bucket"])
def test_of_a_request_the_limits_for_now_count(policy):
    request = Request((), Profile.assumed(0), Config(max_delay=2))
    assert limits_of(policy, request) == limits(policy, request.config)
    now = Limits(max_delay=1, max_merge=2, late_share=0.5)
    expected = now if policy == "least_stale" else limits(policy, request.config)
    assert limits_of(policy, replace(request, limits=now)) == expected


@pytest.mark.parametrize(
    ("word", "formats", "delay"),
    [
        (None, (), 0),
        ("exact", (), 0),
        ("equal", ("f16", "int8"), 0),
        ("fast", ("f16", "int8", "int4"), 1),
    ],
)
def test_one_word_says_what_accuracy_may_cost(word, formats, delay):
    for policy in ("auto", "least_stale"):
        found = limits(policy, Config(accuracy=word))
        assert (found.formats, found.max_delay, found.max_merge) == (formats, delay, 1)
    assert limits("auto", Config(accuracy="exact"), calm=True).max_delay == 0
    assert limits("auto", Config(accuracy="equal"), calm=True).max_delay == 1
    assert limits("bucket", Config(accuracy=word)) == limits("bucket", Config())


@pytest.mark.parametrize("options", [{"max_delay": 1}, {"max_merge": 2}])
def test_finer_options_must_not_contradict_the_word(options):
    with pytest.raises(ConfigError, match="contradict each other"):
        limits("least_stale", Config(accuracy="exact", **options))
    found = limits("least_stale", Config(accuracy="equal", **options))
    assert options.items() <= {**vars(found)}.items()


@pytest.mark.parametrize("policy", ["covap", "deft", "sapipe"])
def test_policies_with_rules_of_their_own_take_no_word(policy):
    with pytest.raises(ConfigError, match=f"policy '{policy}' cannot keep to an accuracy"):
        limits(policy, Config(accuracy="equal"))
