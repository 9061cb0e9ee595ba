from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.plan.formats import is_encoded
from deft_horovod.plan.staleness import staleness
from deft_horovod.policies import Request
from deft_horovod.profile import Profile
from deft_horovod.runtime.extension import native
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.hard_requests import assert_within_limits, hard_requests, with_options
from tests.unit.support.models import request as model
from tests.unit.support.models import with_formats
from tests.unit.support.planning import assert_carried_once, make_parameters

LEAST_STALE = policies.get("least_stale")
QUICK_US = 100.0  # start-up of a message on a network that is not busy


# Few examples: each solves twice, for seconds. test_base.py has many smaller models.
@pytest.mark.slow
@settings(max_examples=7)
@given(hard_requests())
def test_plans_are_valid_within_limits_repeatable_and_not_below_the_bound(request):
    plan = LEAST_STALE.plan(request)
    assert plan == LEAST_STALE.plan(request)
    assert plan == Plan.from_json(plan.to_json())
    assert_carried_once(request.parameters, plan.arenas, plan.slots, plan.buckets)
    assert_within_limits(plan, request)
    native.Plan(plan.model_dump())  # the executor's own rules hold too
    prediction = plan.prediction
    assert prediction.step_us >= prediction.bound_us * (1 - 1e-9)
    assert prediction.bound_us >= prediction.compute_us * (1 - 1e-9)
    assert prediction.step_us == simulate(plan, request.profile).step_us
    assert prediction.status in ("optimal", "feasible", "greedy", "cadence")


@settings(max_examples=8)
@given(hard_requests(max_count=120))
def test_synchronous_plans_are_never_predicted_slower_than_those_of_other_policies(request):
    request = with_options(request, max_delay=0, max_merge=1)
    plan = LEAST_STALE.plan(request)
    for name in ("bucket", "priority", "mgwfbp", "p3", "bytescheduler", "usbyte", "dcredit"):
        other = simulate(policies.get(name).plan(request), request.profile)
        assert plan.prediction.exposed_us <= other.exposed_us * (1 + 1e-9)
    assert {(s.delay, s.merged) for s in plan.prediction.staleness} <= {(0, 1)}


def shares(plan):
    """Of the bytes: (delay, merged, gated) -> share."""
    total = sum(entry.bytes for entry in plan.prediction.staleness)
    return {
        (s.delay, s.merged, s.gated): Fraction(s.bytes, total) for s in plan.prediction.staleness
    }


def share(plan, **wanted):
    return sum(
        part
        for (delay, merged, gated), part in shares(plan).items()
        if {"delay": delay, "merged": merged, "gated": gated}.items() >= wanted.items()
    )


def hidden(plan):
    return plan.prediction.exposed_us <= 0.002 * plan.prediction.compute_us


@pytest.mark.parametrize("ccr", [0.25, 0.5, 0.9])
def test_of_a_language_model_only_the_tied_embedding_comes_late(ccr):
    request = model("gpt2", ccr, alpha_us=QUICK_US, max_delay=1)
    plan = LEAST_STALE.plan(request)
    embedding = request.parameters[0].bytes / sum(p.bytes for p in request.parameters)
    assert hidden(plan)
    assert share(plan, merged=1) == 1.0
    # And the little that is ready just before it, for which a gate would come too early.
    assert embedding * 0.99 < share(plan, delay=1) < embedding + 0.07


@pytest.mark.parametrize("name", ["vgg19", "resnet101"])
@pytest.mark.parametrize("ccr", [0.25, 0.5, 0.9])
def test_models_with_small_first_layers_are_all_but_synchronous(name, ccr):
    plan = LEAST_STALE.plan(model(name, ccr, alpha_us=QUICK_US, max_delay=1))
    assert hidden(plan)
    assert share(plan, delay=0, merged=1) > 0.995


@pytest.mark.parametrize("name", ["vgg19", "resnet101", "gpt2"])
def test_at_a_load_of_two_everything_hides_in_sums(name):
    plan = LEAST_STALE.plan(model(name, 2.0, max_delay=1, max_merge=4))
    assert hidden(plan)
    assert 0.3 < plan.prediction.updates_per_step < 0.5


def test_at_a_load_of_four_everything_hides_where_no_parameter_exceeds_its_window():
    plan = LEAST_STALE.plan(model("resnet101", 4.0, alpha_us=QUICK_US, max_delay=1, max_merge=4))
    assert plan.prediction.gap < 0.02
    assert plan.prediction.step_us < 1.05 * plan.prediction.compute_us


@pytest.mark.parametrize(("name", "longest"), [("vgg19", 1.25), ("gpt2", 1.07)])
def test_one_that_exceeds_its_window_sets_the_bound(name, longest):
    """The largest gradient alone takes longer than two steps have link time for it."""
    plan = LEAST_STALE.plan(model(name, 4.0, alpha_us=QUICK_US, max_delay=1, max_merge=4))
    prediction = plan.prediction
    assert 1.05 < prediction.bound_us / prediction.compute_us < longest
    assert prediction.gap < 0.09


@pytest.mark.parametrize("name", ["vgg19", "resnet101", "gpt2"])
def test_two_links_need_no_sums_where_together_they_carry_everything(name):
    plan = LEAST_STALE.plan(model(name, 1.35, (1.0, 0.4), alpha_us=0.0, max_delay=1, max_merge=4))
    assert len(plan.links) == 2
    assert hidden(plan)
    assert share(plan, merged=1) == 1.0


def test_a_second_link_is_left_alone_where_it_gains_nothing():
    for name in ("vgg19", "gpt2"):
        plan = LEAST_STALE.plan(model(name, 0.25, (1.0, 0.4), max_delay=1, max_merge=4))
        assert [link.name for link in plan.links] == ["horovod"]


@pytest.mark.parametrize(("name", "ccr"), [("vgg19", 1.0), ("resnet101", 1.0), ("gpt2", 1.0)])
def test_synchronous_plans_come_close_to_the_bound(name, ccr):
    plan = LEAST_STALE.plan(model(name, ccr, alpha_us=QUICK_US))
    assert plan.prediction.gap < 0.03
    assert plan.buffers == 1


def test_limits_that_are_not_set_mean_synchronous_training():
    plan = LEAST_STALE.plan(model("gpt2", 2.0))
    assert set(shares(plan)) <= {(0, 1, False), (0, 1, True)}


def test_before_a_link_was_measured_plans_are_those_of_bucket():
    parameters = make_parameters([10, 20, 30])
    request = Request(parameters, Profile.assumed(3), Config(max_delay=1))
    expected = policies.get("bucket").plan(request).model_copy(update={"policy": "least_stale"})
    assert LEAST_STALE.plan(request) == expected


@pytest.mark.slow
@settings(max_examples=5)
@given(hard_requests(max_count=120, least_delay=1), st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_no_more_is_late_than_the_share_allows(request, share):
    request = with_options(request, late_share=share)
    plan = LEAST_STALE.plan(request)
    assert_within_limits(plan, request)
    kinds = staleness(plan)
    late = sum(kind.bytes for kind in kinds if kind.delay or kind.merged > 1)
    assert late <= share * sum(kind.bytes for kind in kinds) + 1


@settings(max_examples=5)
@given(hard_requests(max_count=60))
def test_where_nothing_may_be_late_plans_are_the_exact_ones(request):
    nothing = with_options(request, max_delay=1, max_merge=1, late_share=0.0)
    exact = with_options(request, max_delay=0, max_merge=1)
    mine, theirs = LEAST_STALE.plan(nothing), LEAST_STALE.plan(exact)
    assert mine.prediction.exposed_us <= theirs.prediction.exposed_us * 1.02 + 1.0


@pytest.mark.parametrize("name", ["vgg19", "gpt2"])
def test_what_fits_as_it_is_stays_as_it_is(name):
    request = with_formats(model(name, 0.3), "equal")
    plan = LEAST_STALE.plan(request)
    exact = LEAST_STALE.plan(with_formats(model(name, 0.3), "exact"))
    assert exact.prediction.step_us >= plan.prediction.step_us * (1 - 1e-9)
    if exact.prediction.exposed_us < 0.01 * exact.prediction.compute_us:
        assert not is_encoded(plan)
    assert not is_encoded(exact)


@pytest.mark.parametrize("name", ["vgg19", "gpt2"])
def test_fewer_bytes_hide_what_whole_ones_cannot(name):
    exact, equal, fast = (
        LEAST_STALE.plan(with_formats(model(name, 2.0, max_delay=0), word))
        for word in ("exact", "equal", "fast")
    )
    steps = [plan.prediction.step_us for plan in (exact, equal, fast)]
    assert steps[0] > 1.5 * steps[1]
    assert steps[2] <= steps[1] * 1.001
    assert {bucket.format for bucket in equal.buckets} <= {"f32", "f16", "int8"}
    assert "int4" in {bucket.format for bucket in fast.buckets}
    for plan in (equal, fast):
        assert plan.prediction.bound_us <= plan.prediction.step_us
        assert native.Plan(plan.model_dump())
        members = contents(plan.slots, plan.buckets)
        for bucket, inside in zip(plan.buckets, members, strict=True):
            alone = all(plan.slots[index].exact for index in inside)
            assert not (alone and bucket.format != "f32"), "vectors alone gain nothing"


def test_the_users_own_compression_stays_what_it_is():
    """Values that are sent as float16 are rounded no further."""
    request = with_formats(model("vgg19", 2.0), "fast")
    halved = tuple(replace(p, wire="float16") for p in request.parameters)
    assert not is_encoded(LEAST_STALE.plan(replace(request, parameters=halved)))
