from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod.plan import Plan
from deft_horovod.profile import LinkCost, LinkProfile, Profile
from deft_horovod.solver.least_stale.greedy import choose_greedily
from deft_horovod.solver.least_stale.link_time import make_grid
from deft_horovod.solver.least_stale.options import make_options
from deft_horovod.solver.least_stale.refine import DraftSearch, refine, with_margin
from deft_horovod.solver.messages.blocks import block_up
from deft_horovod.solver.predict.timeline import simulate
from deft_horovod.solver.problem import Choice, Limits, problem_of
from tests.unit.support.hard_requests import hard_requests
from tests.unit.support.models import request as model
from tests.unit.support.planning import make_parameters


def setting_of(request, limits):
    blocking = block_up(request.parameters, request.profile)
    problem = problem_of(blocking, request.profile, limits, (0,))
    return DraftSearch("mine", blocking, problem, ("horovod",), request.profile)


@settings(max_examples=15)
@given(hard_requests(max_count=60), st.integers(1, 2))
def test_a_draft_is_a_plan_and_its_timeline(request, period):
    setting = setting_of(request, Limits(request.config.max_delay, 2))
    solution = choose_greedily(make_options(make_grid(setting.problem, period)))
    choices = [solution.options.choices[option] for option in solution.chosen]
    draft = refine(setting, period, choices, solution.exposed_us)
    assert draft.timeline == simulate(draft.plan, setting.judge)
    assert Plan.from_json(draft.plan.to_json()) == draft.plan  # it obeys all rules
    hopeless = refine(setting, period, choices, 1e12)  # nothing to gain: not corrected
    assert draft.exposed_us <= hopeless.exposed_us
    assert hopeless.choices == tuple(choices)
    for before, after in zip(choices, draft.choices, strict=True):
        assert after.harm >= before.harm
        assert (after.merged, after.end_step, after.links) == (
            before.merged,
            before.end_step,
            before.links,
        )
        assert after.delay <= setting.problem.limits.max_delay


def two_layers(first_us, second_us, second_ready_us, limits):
    """Forward 40, backward 60, one byte takes one microsecond; each layer is a block."""
    parameters = make_parameters([int(first_us // 4), int(second_us // 4)])
    parameters = (parameters[0], replace(parameters[1], device="cuda"))
    profile = Profile(
        ready_order=(0, 1),
        ready_us=(0.0, second_ready_us),
        first_use_us=(40.0, 0.0),
        forward_us=4000.0,
        backward_us=6000.0,
        links=Profile.link_of(LinkCost(alpha_us=0.0, beta_us_per_byte=1.0)),
    )
    blocking = block_up(parameters, profile, alpha_share=1.0, window_share=4.0)
    problem = problem_of(blocking, profile, limits, (0,))
    return DraftSearch("mine", blocking, problem, ("horovod",), profile)


def test_a_message_in_the_way_of_a_more_urgent_one_leaves_later():
    setting = two_layers(3000, 3900, 2000.0, Limits(1, 1))
    assert [len(block.buckets) for block in setting.blocking.blocks] == [1, 1]
    choices = [Choice(links=(0,), delay=1), Choice(links=(0,))]
    draft = refine(setting, 1, choices, 0.0)
    assert [departure.block for departure in draft.departures] == [1, 0]
    assert draft.exposed_us == 0.0
    assert draft.choices == tuple(choices)


def test_what_is_late_in_any_order_gets_a_later_deadline():
    setting = two_layers(100, 3900, 5000.0, Limits(1, 1))
    draft = refine(setting, 1, [Choice(links=(0,)), Choice(links=(0,))], 0.0)
    assert draft.choices[1].delay == 1
    assert draft.exposed_us == 0.0
    kept = two_layers(100, 3900, 5000.0, Limits(0, 1))
    draft = refine(kept, 1, [Choice(links=(0,)), Choice(links=(0,))], 0.0)
    assert draft.choices[1].delay == 0
    assert draft.exposed_us == pytest.approx(2900, rel=0.02)


def test_the_margin_slows_all_links_down():
    profile = model("vgg19", 1.0, rates=(1.0, 0.4)).profile
    slower = with_margin(profile, 0.5)
    for link, before in zip(slower.links, profile.links, strict=True):
        assert isinstance(link, LinkProfile)
        assert link.name == before.name
        assert link.cost.time_us(1000) == 2.0 * before.cost.time_us(1000)
        assert link.busy_cost.time_us(1000) == 2.0 * before.busy_cost.time_us(1000)
    assert slower.compute_us == profile.compute_us
