from dataclasses import replace

import pytest

from deft_horovod import policies
from deft_horovod.plan.contents import contents
from deft_horovod.solver.deft import solve as deft
from deft_horovod.solver.least_stale.solve import Candidate, choose, solve
from deft_horovod.solver.problem import Limits
from tests.unit.support.models import request as model

GIVEN = model("vgg19", 1.0)
PLAN = policies.get("bucket").plan(GIVEN)


def candidate(exposed_us=0.0, with_margin_us=0.0, harm=0.0, plan=PLAN):
    return Candidate(plan, exposed_us, with_margin_us, harm, "greedy")


def best(*candidates):
    return choose(candidates, GIVEN.profile)


def test_goals_come_one_after_the_other():
    exposed = candidate(5_000.0)
    fragile = candidate(0.0, 6_000.0)
    stale = candidate(0.0, 0.0, 0.5)
    fresh = candidate(0.0, 0.0, 0.2)
    assert best(exposed, fragile, stale) is stale
    assert best(exposed, fragile) is fragile
    assert best(stale, fresh) is fresh


def test_differences_too_small_to_measure_count_as_none():
    assert best(candidate(0.0, 0.0, 0.2), fresh := candidate(300.0, 300.0, 0.1)) is fresh


def test_with_all_else_equal_few_links_and_messages_win():
    finer = policies.get("wfbp").plan(GIVEN)
    assert len(finer.tasks) > len(PLAN.tasks)
    assert best(candidate(plan=finer), fewer := candidate()) is fewer


def merged_parameters(plan):
    """Those that are updated less than once a step."""
    inside = contents(plan.slots, plan.buckets)
    return {
        slot
        for generation in plan.generations
        if generation.last_step > generation.first_step
        for slot in inside[generation.bucket]
    }


def test_weights_decide_what_is_merged():
    given = model("resnet101", 1.2, alpha_us=0.0)
    plain = solve("mine", given.parameters, given.profile, Limits(0, 2))
    dear = merged_parameters(plain)
    assert dear

    def weights(blocking):
        return [1000.0 if dear & set(block.parameters) else 1.0 for block in blocking.blocks]

    weighted = solve("mine", given.parameters, given.profile, Limits(0, 2), weights=weights)
    assert weighted.prediction.exposed_us < plain.prediction.exposed_us + 2_000

    def size(members):
        return sum(given.parameters[index].bytes for index in members)

    assert size(merged_parameters(weighted) & dear) < 0.6 * size(dear)


def test_none_is_slower_than_the_plans_it_is_compared_with():
    given = replace(GIVEN, profile=model("vgg19", 0.5).profile)
    other = policies.get("bucket").plan(given)
    plan = solve("mine", given.parameters, given.profile, Limits(0, 1), [other])
    assert plan.policy == "mine"
    alone = solve("mine", given.parameters, given.profile, Limits(0, 1))
    assert plan.prediction.exposed_us <= alone.prediction.exposed_us


@pytest.mark.slow
def test_a_late_plan_is_asked_for_where_not_all_is_hidden_and_taken_if_it_hides_more():
    limits = Limits(1, 4)
    crowded = model("resnet101", 4.0)

    def late():
        return deft.solve("deft", crowded.parameters, crowded.profile, limits)

    alone = solve("mine", crowded.parameters, crowded.profile, limits)
    both = solve("mine", crowded.parameters, crowded.profile, limits, late=late)
    hides_more = late().prediction.exposed_us < 0.98 * alone.prediction.exposed_us
    assert both.prediction.exposed_us <= alone.prediction.exposed_us * 1.001
    assert (both.tasks == late().tasks) == hides_more

    def never():
        pytest.fail("everything is hidden")

    free = model("resnet101", 0.5)
    plan = solve("mine", free.parameters, free.profile, limits, late=never)
    assert plan.prediction.exposed_us < 0.002 * plan.prediction.compute_us
