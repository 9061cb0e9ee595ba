"""A request to compare: what it changes of a script's options, and how long it takes."""

import pytest

from deft_horovod.config import Config
from deft_horovod.job.comparison_request import ComparisonRequest
from deft_horovod.runtime.decide.phases import Phases

TURNS = {"trial_steps": 4, "trial_rounds": 2}


def request(**options):
    return ComparisonRequest(3, 5, {**TURNS, **options}, lambda *_: "")


@pytest.mark.parametrize(
    ("script", "options", "policy"),
    [
        ("auto", {}, "auto"),
        ("stock", {}, "auto"),
        ("deft", {}, "deft"),
        ("deft", {"policy": "bucket"}, "bucket"),
    ],
)
def test_the_scripts_own_policy_counts_unless_another_is_asked_for(script, options, policy):
    config = request(**options).over_config(Config(policy=script, plan_file="plan.json"))
    assert (config.policy, config.plan_file) == (policy, "")
    assert (config.trial_steps, config.trial_rounds) == (4, 2)


@pytest.mark.parametrize("policy", ["auto", "deft", "priority", "least_stale"])
@pytest.mark.parametrize("late", [{}, {"max_delay": 1, "warmup_steps": 100}])
def test_as_many_steps_are_needed_as_the_phases_take(policy, late):
    asked = request(policy=policy)
    assert "3 to warm up, 5 to measure" in asked.needs
    config = asked.over_config(Config(**late))
    phases, steps, seen = Phases(policy, config, purpose="compare"), 0, set()
    while not (phases.phase.kind == "trial" and phases.undecided):
        steps += phases.phase.steps
        seen.add((phases.phase.policy, phases.phase.late))
        phases.proceed()
    steps += phases.phase.steps
    assert asked.needed_steps == steps
    turns = 5 if policy == "auto" and late else 4 if policy == "auto" else 2
    assert steps == 3 + 5 + turns * 2 * (4 + 1)
    assert asked.needs.endswith(f"{steps - 8} to compare")
    assert ("stock", False) in seen
