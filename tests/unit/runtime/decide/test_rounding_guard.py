"""When a wire format is taken away."""

import logging
from dataclasses import replace

import pytest

from deft_horovod import policies
from deft_horovod.plan.formats import is_encoded
from deft_horovod.preserver.cost import Gradients
from deft_horovod.preserver.rounding import TOLERATED, RoundingError
from deft_horovod.runtime.decide.guard import Guard
from deft_horovod.runtime.decide.rounding_guard import RoundingGuard
from deft_horovod.runtime.follower import Wish
from deft_horovod.solver.problem import Limits
from tests.unit.support.boundaries import boundary
from tests.unit.support.models import request as model
from tests.unit.support.models import with_formats

WINDOW = 100
NOISY = Gradients(3.0, 2.0, 0.0, 2, 100)
EQUAL = Gradients(1.0, 1.0, 0.0, 2, 100)  # on all ranks


def rounded(**errors):
    """A bucket of each format, which has left so much."""
    return [RoundingError(one, (f"of {one}",), error) for one, error in errors.items()]


class Reducer:
    """One whose messages were rounded by so much."""

    def __init__(self, **errors):
        self.errors = rounded(**errors)

    def rounding_errors(self):
        return self.errors


class Seen:
    def __init__(self, gradients):
        self.gradients = gradients

    def follow(self, members, plan): ...

    def begin_anew(self): ...

    def rest(self): ...

    def seen(self, fewest_steps):
        del fewest_steps
        return self.gradients


def asked(formats=("f16", "int8"), **limits):
    request = with_formats(model("vgg19", 2.0), "fast")
    allowed = Limits(**{"max_delay": 0, "max_merge": 1, **limits}, formats=formats)
    return replace(request, limits=allowed)


def kept(guard, gradients, formats=("f16", "int8", "int4")):
    return guard.narrow(asked(formats), gradients).limits.formats


def test_before_gradients_are_known_all_formats_are_allowed():
    guard = RoundingGuard(TOLERATED["equal"])
    assert kept(guard, None) == ("f16", "int8", "int4")


def test_what_is_expected_to_add_too_much_is_left_out_from_the_first():
    assert kept(RoundingGuard(TOLERATED["equal"]), EQUAL) == ("f16", "int8")
    assert kept(RoundingGuard(TOLERATED["fast"]), NOISY) == ("f16", "int8", "int4")


def test_what_was_measured_counts_more_than_what_is_expected():
    guard = RoundingGuard(TOLERATED["equal"])
    assert not guard.wants(rounded(int8=0.3), NOISY)
    assert guard.wants(rounded(int8=0.3), NOISY)
    assert kept(guard, NOISY) == ("f16",)
    assert guard.stats()["vetoed"] == ["int8", "int4"]
    # It comes back once it is small again.
    guard.wants(rounded(int8=0.01), NOISY)
    assert kept(guard, NOISY) == ("f16", "int8")


def test_a_plan_made_without_gradients_is_judged_by_the_first():
    guard = RoundingGuard(TOLERATED["fast"])
    assert kept(guard, None) == ("f16", "int8", "int4")
    assert guard.wants([], EQUAL)
    assert kept(guard, EQUAL) == ("f16", "int8")
    assert not guard.wants([], EQUAL)
    assert kept(RoundingGuard(TOLERATED["fast"]), None)
    assert not guard.wants(rounded(int4=0.2), NOISY)


def test_an_error_must_last():
    guard = RoundingGuard(TOLERATED["equal"])
    for _ in range(4):
        assert not guard.wants(rounded(int8=0.3), NOISY)
        assert not guard.wants(rounded(int8=0.01), NOISY)


def buckets(*errors):
    """All in eight bits, of a gradient each, which are those of the model."""
    names = [parameter.name for parameter in asked().parameters if not parameter.exact]
    return [RoundingError("int8", (names[i],), error) for i, error in enumerate(errors)]


def test_gradients_that_are_rounded_worse_than_others_are_singled_out(log):
    guard = RoundingGuard(TOLERATED["equal"])
    errors = buckets(0.007, 0.3, 0.007)
    assert not guard.wants(errors, NOISY)
    assert guard.wants(errors, NOISY)
    (name,) = errors[1].gradients
    assert name in log.text
    assert guard.stats()["exact"] == [name]
    request = asked()
    narrowed = guard.narrow(request, NOISY)
    assert narrowed.limits.formats == request.limits.formats
    changed = [
        after.name
        for before, after in zip(request.parameters, narrowed.parameters, strict=True)
        if before != after
    ]
    assert changed == [name]
    # It stays so, and calls for no third plan.
    assert not guard.wants(buckets(0.007), NOISY)
    assert guard.narrow(request, None).parameters == narrowed.parameters


def test_a_gradient_is_singled_out_only_if_it_stays_rough():
    guard = RoundingGuard(TOLERATED["equal"])
    for _ in range(4):
        assert not guard.wants(buckets(0.007, 0.3, 0.007), NOISY)
        assert not guard.wants(buckets(0.007, 0.007, 0.3), NOISY)
    assert guard.stats()["exact"] == []


def test_where_most_are_rough_their_format_is_taken_away():
    guard = RoundingGuard(TOLERATED["equal"])
    for _ in range(2):
        guard.wants(buckets(0.3, 0.3, 0.007), NOISY)
    assert guard.stats()["exact"] == []
    assert kept(guard, NOISY) == ("f16",)


@pytest.fixture
def log(caplog):
    """Whatever level others have left."""
    with caplog.at_level(logging.WARNING, "deft_horovod"):
        yield caplog


def test_a_guard_asks_for_a_finer_plan_and_gets_one(log):
    guard = Guard(None, "none", Seen(NOISY), RoundingGuard(TOLERATED["equal"]))
    policy = policies.get("least_stale")

    def planned():
        plan, judgement = guard.judge(policy, asked())
        assert judgement is None
        guard.judged(judgement)
        guard.follow((), plan)
        return {bucket.format for bucket in plan.buckets}

    assert "int8" in planned()
    calm = boundary(planned=Reducer(int8=0.007))
    assert all(guard.end_boundary(calm) is Wish.NOTHING for _ in range(4 * WINDOW))
    rough = boundary(planned=Reducer(int8=0.4))
    wishes = [guard.end_boundary(rough) for _ in range(2 * WINDOW)]
    assert wishes[-1] is Wish.ANOTHER_PLAN
    assert set(wishes[:-1]) == {Wish.NOTHING}
    assert {"f16"} <= planned() <= {"f16", "f32"}
    assert guard.stats()["rounding"]["vetoed"] == ["int8"]
    assert "int8 would add" in log.text


def test_other_ranks_look_at_nothing():
    guard = Guard(None, "none", None, RoundingGuard(TOLERATED["equal"]))
    rough = boundary(planned=Reducer(int8=0.4))
    assert all(guard.end_boundary(rough) is Wish.NOTHING for _ in range(5 * WINDOW))


def test_plans_that_may_be_late_are_judged_after_formats_were_narrowed():
    guard = Guard(0.02, "local", Seen(EQUAL), RoundingGuard(TOLERATED["fast"]))
    plan, judgement = guard.judge(policies.get("least_stale"), asked(("int4",), max_delay=1))
    assert judgement is not None
    assert not is_encoded(plan)


def test_what_is_foreseen_is_what_is_asked_while_gradients_stay_as_they_are():
    rounding = RoundingGuard(TOLERATED["equal"])
    guard = Guard(None, "local", Seen(NOISY), rounding)
    assert guard.foreseen(asked()) == asked()  # nothing is known yet
    rounding.wants(rounded(int8=0.9), EQUAL)
    narrowed = rounding.narrow(asked(), EQUAL)
    assert narrowed != asked()
    assert guard.foreseen(asked()) == narrowed
    assert Guard(1.0, "local", None).foreseen(asked()) == asked()
