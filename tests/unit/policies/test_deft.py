import pytest
from hypothesis import given, settings

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.errors import ConfigError
from deft_horovod.plan import Plan
from deft_horovod.policies import Request
from deft_horovod.profile import Profile
from deft_horovod.runtime.extension import native
from deft_horovod.solver.deft import schedule
from deft_horovod.solver.problem import LONGEST_PERIOD, Item, Limits
from deft_horovod.solver.timeline import simulate
from tests.unit.hard_requests import assert_within_limits, hard_requests, with_options
from tests.unit.models import request as model
from tests.unit.planning import assert_carried_once, make_parameters
from tests.unit.problems import example

DEFT = policies.get("deft")


@settings(max_examples=25)
@given(hard_requests(least_delay=1))
def test_plans_are_valid_within_limits_repeatable_and_not_below_the_bound(request):
    plan = DEFT.plan(request)
    assert plan == DEFT.plan(request)
    assert plan == Plan.from_json(plan.to_json())
    assert_carried_once(request.parameters, plan.arenas, plan.slots, plan.buckets)
    assert_within_limits(plan, request)
    native.Plan(plan.model_dump())  # the executor's own rules hold too
    assert not any(generation.gated for generation in plan.generations)
    assert plan.period <= LONGEST_PERIOD
    assert plan.prediction.step_us >= plan.prediction.bound_us * (1 - 1e-9)
    assert plan.prediction.step_us == simulate(plan, request.profile).step_us


@pytest.mark.parametrize("name", ["vgg19", "resnet101", "gpt2"])
@pytest.mark.parametrize("ccr", [0.25, 1.0, 2.0])
def test_delay_and_sums_hide_what_the_links_can_carry(name, ccr):
    plan = DEFT.plan(model(name, ccr))
    assert plan.prediction.step_us < 1.01 * plan.prediction.compute_us


@pytest.mark.parametrize("name", ["vgg19", "resnet101", "gpt2"])
def test_updates_become_rarer_as_the_load_grows(name):
    rates = [DEFT.plan(model(name, ccr)).prediction.updates_per_step for ccr in (0.5, 1.5, 2, 3)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 1.0
    assert rates[-1] < 0.45


def test_a_second_link_takes_part_of_the_load_and_saves_sums():
    alone = DEFT.plan(model("resnet101", 1.5))
    both = DEFT.plan(model("resnet101", 1.5, (1.0, 0.4)))
    assert {task.link for task in both.tasks} == {0, 1}
    assert both.prediction.exposed_us == alone.prediction.exposed_us == 0.0
    assert both.prediction.updates_per_step > alone.prediction.updates_per_step + 0.15


def test_without_delay_it_is_refused_with_the_alternatives():
    request = with_options(model("vgg19", 1.0), max_delay=0)
    with pytest.raises(ConfigError, match="max_delay forbids it") as caught:
        DEFT.plan(request)
    assert "'least_stale', 'bucket' or 'priority'" in str(caught.value)


def test_before_a_link_was_measured_plans_are_those_of_bucket():
    request = Request(make_parameters([10, 20, 30]), Profile.assumed(3), Config())
    expected = policies.get("bucket").plan(request).model_copy(update={"policy": "deft"})
    assert DEFT.plan(request) == expected


def deft(times, limits, **changes):
    found = schedule(example(times=times, limits=limits, **changes))
    leaving = [(d.block, d.step) for d in found.departures]
    return found.period, [timing.spans for timing in found.timings], leaving


def test_what_fits_behind_backward_is_not_late():
    # Ready at 20, 40 and 60 of 60.
    period, spans, leaving = deft((20.0, 20.0, 5.0), Limits(1, 1))
    assert (period, leaving) == (1, [(0, 0), (1, 0), (2, 0)])
    assert spans == [((0, 0, 0),), ((0, 0, 0),), ((0, 0, 1),)]


def test_the_old_leaves_first_and_the_new_has_the_rest():
    # 70 old in forward (40) and backward: 30 of its 60 remain, too little for 40 ready at 20.
    period, spans, leaving = deft((40.0, 30.0, 30.0), Limits(1, 1))
    assert period == 1
    assert spans == [((0, 0, 1),)] * 3
    assert leaving == [(0, 0), (1, 0), (2, 0)]


def test_what_does_not_fit_accumulates_and_leaves_as_one_sum():
    # 120 a step, but only 100 of link time; one fits in a forward, one in a backward.
    period, spans, _ = deft((40.0, 40.0, 40.0), Limits(1, 4))
    lengths = [last - first + 1 for of_block in spans for first, last, _ in of_block]
    assert len(lengths) == 2 * period
    assert set(lengths) == {1, 2}
    assert sum(lengths) == 3 * period


def test_no_sum_is_longer_than_allowed_even_if_the_link_is_overcharged():
    _, spans, _ = deft((200.0, 200.0, 200.0), Limits(1, 2))
    assert {last - first + 1 for of_block in spans for first, last, _ in of_block} == {2}


def test_a_block_larger_than_a_window_is_spread_over_several():
    # 120, a backward holds 50 of it, a forward 40; with all later windows of its delay it fits.
    item = Item(10.0, None, 1.0, ((20.0,),) * 6)
    found = schedule(example(items=(item,), limits=Limits(1, 2)))
    sent = len(found.timings[0].spans)
    assert [departure.bucket for departure in found.departures] == list(range(6)) * sent
    assert sent * 120 <= found.period * 100
    assert {delay for _, _, delay in found.timings[0].spans} == {1}


def test_links_are_filled_side_by_side():
    items = tuple(Item(60.0, None, 1.0, ((50.0, 100.0),)) for _ in range(3))
    found = schedule(example(items=items, links=2, limits=Limits(1, 1)))
    assert sorted(departure.link for departure in found.departures) == [0, 0, 1]
