from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.policies.published.tensor_blocks import Blocks, Sending, Tensors, block_sizes
from deft_horovod.profile import LinkCost
from deft_horovod.solver.predict.timeline import simulate
from tests.timing import timed
from tests.unit.support.block_plans import BLOCK_BYTES, COST, assert_sound, instance, many_gradients
from tests.unit.support.hard_requests import hard_requests
from tests.unit.support.models import MODELS
from tests.unit.support.models import request as model

BLOCKS = Blocks.of(BLOCK_BYTES, COST)


def test_gradients_are_numbered_as_forward_uses_them():
    tensors = Tensors.of(instance([1, 2, 3], (10.0, 10.0, 5.0), (50.0, None, 0.0), 60.0))
    assert tensors.parameter == (1, 2, 0)  # without a known use: first
    assert tensors.bytes == (2 * BLOCK_BYTES, 3 * BLOCK_BYTES, BLOCK_BYTES)
    assert tensors.ready_us == (10.0, 5.0, 10.0)
    assert tensors.ready_order == (1, 2, 0)  # of those at one moment, the one used last


def test_a_gradient_is_ready_at_the_end_of_backward_at_the_latest():
    tensors = Tensors.of(instance([1, 1], (90.0, 30.0), (0.0, 5.0), 10.0, backward_us=60.0))
    assert tensors.ready_us == (60.0, 30.0)


def test_blocks_are_aligned():
    assert Blocks.of(1039, COST).block_bytes == 1024
    assert Blocks.of(5, COST).block_bytes == 16


def test_as_many_blocks_are_needed_as_fill_the_time():
    half = BLOCK_BYTES // 2
    left = 3 * BLOCK_BYTES + half  # three blocks and half of one
    assert BLOCKS.needed_bytes(-5.0, left) == BLOCK_BYTES
    assert BLOCKS.needed_bytes(0.0, left) == BLOCK_BYTES
    assert BLOCKS.needed_bytes(0.0, half) == half
    assert BLOCKS.needed_bytes(10.0, left) == BLOCK_BYTES
    assert BLOCKS.needed_bytes(10.5, left) == 2 * BLOCK_BYTES
    assert BLOCKS.needed_bytes(35.0, left) == left
    assert BLOCKS.needed_bytes(35.5, left) is None  # four blocks, but the last one is not full


@given(
    st.floats(-1e6, 1e6),
    st.integers(1, 1 << 40),
    st.integers(0, 1 << 30),
    st.sampled_from([0.0, 1e-6, 1e-3, 1.0]),
)
@example(5e-324, 1, 0, 1.0)
def test_one_block_fewer_would_not_fill_the_time(time_us, left, block_bytes, beta):
    blocks = Blocks.of(block_bytes, LinkCost(alpha_us=1.0, beta_us_per_byte=beta))
    needed = blocks.needed_bytes(time_us, left)
    if needed is None:
        assert time_us > beta * left
        return
    assert 0 < needed <= left
    assert needed == left or needed % blocks.block_bytes == 0
    fewer = -(-needed // blocks.block_bytes) - 1
    assert fewer == 0 or fewer * blocks.block_bytes * beta < time_us * (1 + 1e-9)


def test_leftovers_are_one_message_each_in_the_order_of_use():
    assert BLOCKS.leftovers([BLOCK_BYTES, 0, 2 * BLOCK_BYTES], 100.0) == [
        Sending(0, BLOCK_BYTES, 100.0),
        Sending(2, 2 * BLOCK_BYTES, 130.0),
    ]


def test_what_begins_when_backward_has_ended_leaves_in_forward():
    tensors = Tensors.of(instance([1, 2], (60.0, 30.0), (0.0, 5.0), 10.0))
    sent = [Sending(1, 1024, 59.0), Sending(1, 1024, 60.0)]
    pieces = tensors.pieces(sent, 60.0)
    assert [(piece.parameter, piece.forward) for piece in pieces] == [(1, False), (1, True)]


def test_sizes_above_the_largest_gradient_are_tried_once():
    request = instance([1, 16, 15], (10.0, 9.0, 5.0), (0.0, 10.0, 20.0), 60.0)
    tensors = Tensors.of(request)
    assert block_sizes(request.config, tensors) == [BLOCK_BYTES]
    tuned = replace(request, config=Config(partition_bytes=BLOCK_BYTES))
    # 32 blocks: all of them, one gradient's 16, 8, 4; smaller ones than 4 KiB are not tried.
    assert block_sizes(tuned.config, tensors) == [count * BLOCK_BYTES for count in (16, 8, 4)]


# What holds for every policy that is made of blocks.
EACH = pytest.mark.parametrize("policy", [policies.get("usbyte"), policies.get("dcredit")])


@EACH
@given(request=hard_requests(max_count=200))
@settings(max_examples=40, deadline=None)
def test_plans_of_hard_models_are_sound(policy, request):
    assert_sound(policy.plan(request), request)


@EACH
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("ccr", [0.5, 2.0])
def test_tuning_finds_the_best_of_the_sizes(policy, name, ccr):
    def predicted_us(**options):
        request = model(name, ccr, **options)
        return simulate(policy.plan(request), request.profile).step_us

    tuned = model(name, ccr)
    sizes = block_sizes(tuned.config, Tensors.of(tuned))
    assert predicted_us() == min(predicted_us(tune=False, partition_bytes=size) for size in sizes)


@pytest.mark.alone
@EACH
def test_two_thousand_gradients_are_planned_in_seconds(policy):
    request = many_gradients()
    took_s, plan = timed(lambda: policy.plan(request), 5.0)
    assert took_s < 5.0
    assert len(plan.buckets) <= 3 * len(request.parameters)
    assert_sound(plan, request)
