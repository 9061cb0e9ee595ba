"""Stock Horovod as it is simulated. tests/unit/scripts/benchmarks/test_predicted.py measures it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.base.parameter import Parameter
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.simulate.stock import (
    CYCLE_US,
    is_left_to_horovod,
    simulate_handed_over,
    simulate_stock,
)
from deft_horovod.solver.predict.bounds import bound_us
from deft_horovod.solver.problem import Limits
from tests.unit.support.hard_requests import hard_requests
from tests.unit.support.models import request as model


def parameters(*kilobytes, wires=None):
    wires = wires or ["float32"] * len(kilobytes)
    return tuple(
        Parameter(f"p{i}", size * (250 if wire == "float32" else 500), wire, wire, "cpu")
        for i, (size, wire) in enumerate(zip(kilobytes, wires, strict=True))
    )


def profile(*ready_us, alpha_us=100.0, backward_us=10_000.0):
    """A byte takes a nanosecond, so a kilobyte takes a microsecond."""
    return Profile(
        ready_order=tuple(sorted(range(len(ready_us)), key=lambda i: ready_us[i])),
        ready_us=ready_us,
        first_use_us=(0.0,) * len(ready_us),
        forward_us=5_000.0,
        backward_us=backward_us,
        optimizer_us=1_000.0,
        links=Profile.link_of(LinkCost(alpha_us=alpha_us, beta_us_per_byte=0.001)),
    )


def test_what_becomes_ready_while_a_message_travels_is_fused():
    """The first one leaves at 1,000 and arrives at 4,100; three have come meanwhile."""
    step = simulate_stock(
        parameters(3_000, 1_000, 1_000, 500, 2_000),
        profile(500.0, 1_200.0, 2_000.0, 4_100.0, 10_000.0),
    )
    assert [message.members for message in step.messages] == [(0,), (1, 2, 3), (4,)]
    assert [message.starts_us for message in step.messages] == [1_000.0, 4_100.0, 10_700.0]
    assert step.messages[-1].arrives_us == 10_700.0 + 2_100.0
    assert (step.compute_us, step.exposed_us) == (16_000.0, 2_800.0)


def test_short_messages_wait_for_the_next_cycle():
    step = simulate_stock(parameters(1, 1, 1), profile(0.0, 10.0, 2_500.0))
    assert [message.starts_us for message in step.messages] == [0.0, CYCLE_US, 3 * CYCLE_US]
    assert step.exposed_us == 0.0


def test_fusion_ends_at_the_threshold_and_looks_over_other_kinds():
    kinds = ["float32", "float16", "float32", "float16", "float32"]
    step = simulate_stock(
        parameters(4, 4, 4, 4, 4, wires=kinds), profile(*[0.0] * 5), fusion_bytes=10_000
    )
    assert [message.members for message in step.messages] == [(0, 2), (1, 3), (4,)]
    large = simulate_stock(parameters(40, 4, 40), profile(*[0.0] * 3), fusion_bytes=10_000)
    assert [message.members for message in large.messages] == [(0,), (1,), (2,)]


def test_without_a_link_nothing_travels():
    step = simulate_stock(parameters(4), Profile.assumed(1))
    assert (step.messages, step.exposed_us) == ((), 0.0)


@settings(max_examples=60, deadline=None)
@given(hard_requests(max_count=60), st.integers(1, 10**8))
def test_everything_travels_once_in_turn_and_no_floor_is_beaten(request, fusion_bytes):
    step = simulate_stock(request.parameters, request.profile, fusion_bytes=fusion_bytes)
    sent = sorted(index for message in step.messages for index in message.members)
    assert sent == list(range(len(request.parameters)))
    ready_us = request.profile.ready_us
    free_us = 0.0
    for message in step.messages:
        assert message.starts_us >= free_us
        backward_us = request.profile.backward_us
        assert all(message.starts_us >= min(ready_us[i], backward_us) for i in message.members)
        assert len(message.members) == 1 or message.bytes <= fusion_bytes
        free_us = message.arrives_us
    floor_us = bound_us(request.parameters, request.profile, Limits(0, 1))
    assert step.step_us >= floor_us * (1 - 1e-9)


@settings(max_examples=30, deadline=None)
@given(hard_requests(max_count=40))
def test_only_synchronous_plans_without_order_are_left_to_horovod(request):
    for name in ("bucket", "wfbp"):
        plan = policies.get(name).plan(request)
        if plan.tasks:
            assert is_left_to_horovod(plan)
            step = simulate_handed_over(plan, request.profile)
            sent = sorted(index for message in step.messages for index in message.members)
            assert sent == list(range(len(plan.buckets)))
            floor_us = bound_us(request.parameters, request.profile, Limits(0, 1))
            assert step.step_us >= floor_us * (1 - 1e-9)
    assert not is_left_to_horovod(policies.get("priority").plan(request))
    assert not is_left_to_horovod(policies.get("stock").plan(request))


@pytest.mark.parametrize("policy", ["deft", "least_stale"])
def test_plans_with_windows_are_not_left_to_horovod(policy):
    assert not is_left_to_horovod(policies.get(policy).plan(model("gpt2", 1.0, max_delay=1)))
