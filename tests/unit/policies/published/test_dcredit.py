"""The examples are worked out by hand from the published rules; k blocks take 20 + 10 k us.

Gradient 0 is used first. A window fills the time from when the link is free to the next gradient;
Delta is that time less a start-up.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.policies.published.dcredit import credit_windows
from deft_horovod.policies.published.tensor_blocks import Blocks, Tensors
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.block_plans import (
    BLOCK_BYTES,
    COST,
    assert_sound,
    instance,
    leaving,
    many_gradients,
)
from tests.unit.support.hard_requests import hard_requests
from tests.unit.support.planning import requests

DCREDIT = policies.get("dcredit")


def windows_of(request):
    """(gradient, blocks) of the messages of each window."""
    tensors = Tensors.of(request)
    return [
        [(tensors.parameter[sent.tensor], sent.bytes / BLOCK_BYTES) for sent in window.sent]
        for window in credit_windows(tensors, Blocks.of(BLOCK_BYTES, COST))
    ]


def predicted_us(request):
    return simulate(DCREDIT.plan(request), request.profile).step_us


def test_a_window_may_span_several_gradients():
    # until 200: Delta = 200 - 100 - 20 = 80: eight of the ten blocks of 2. Free at 200.
    # until 300: Delta = 80: all four blocks of 1, 80 - 40 = 40 is left; the two blocks of 2 are
    #            fewer than four, so both. Free at max(200 + 20 + 60, 300) = 300.
    # forward:   0.
    # Our two messages of the second window pay a start-up each: 200 to 260, 260 to 300. So 0
    # arrives at 340, and the step takes 340 + 150.
    request = instance([2, 4, 10], (300.0, 200.0, 100.0), (0.0, 50.0, 100.0), 150.0)
    assert windows_of(request) == [[(2, 8)], [(1, 4), (2, 2)], [(0, 2)]]
    plan = DCREDIT.plan(request)
    assert leaving(plan) == [
        (2, 8, "backward"),
        (1, 4, "backward"),
        (2, 2, "backward"),
        (0, 2, "forward"),
    ]
    assert plan.links[0].credit_bytes == 8 * BLOCK_BYTES
    assert predicted_us(request) == 490.0


def test_a_window_is_reduced_by_what_was_taken():
    # until 200: eight of the sixteen blocks of 2, as above.
    # until 300: Delta = 80: both blocks of 1, 60 is left: six blocks of 2. (Not reduced, Delta
    #            would ask for eight, and the window would end 20 us after 0 is ready.)
    # forward:   0, then the last two blocks of 2.
    # With a start-up for each message the second window ends at 320: 0 arrives at 350, 2 at 390.
    request = instance([1, 2, 16], (300.0, 200.0, 100.0), (0.0, 50.0, 100.0), 150.0)
    assert windows_of(request) == [[(2, 8)], [(1, 2), (2, 6)], [(0, 1)], [(2, 2)]]
    assert leaving(DCREDIT.plan(request)) == [
        (2, 8, "backward"),
        (1, 2, "backward"),
        (2, 6, "backward"),
        (0, 1, "forward"),
        (2, 2, "forward"),
    ]
    assert predicted_us(request) == 500.0


def test_no_time_means_one_block_and_a_busy_link_none():
    # 1 has two blocks and half of one.
    # until 65:  Delta = 65 - 50 - 20 = -5, more than -20: one block of 3. Free at 50 + 30 = 80.
    # until 155: Delta = 155 - 80 - 20 = 55: 2 has three blocks, fewer than six: all, 25 is left:
    #            ceil(25 / 10) = 3 blocks of 3. Free at 80 + 20 + 60 = 160.
    # until 158: Delta = 158 - 160 - 20 = -22, not more than -20: no window. Free at 160.
    # forward:   0, 1, the other two blocks of 3.
    # Messages: 50 to 80, 80 to 130, 130 to 180; 0 to 210, 1 to 255, 3 to 295.
    # Forward reaches 0 at 210, 1 at 255, 2 at 275, 3 at 295, and ends at 315.
    request = instance([1, 2.5, 3, 6], (158.0, 155.0, 65.0, 50.0), (0.0, 20.0, 40.0, 60.0), 80.0)
    assert windows_of(request) == [
        [(3, 1)],
        [(2, 3), (3, 3)],
        [(0, 1)],
        [(1, 2.5)],
        [(3, 2)],
    ]
    plan = DCREDIT.plan(request)
    assert plan.links[0].credit_bytes == 6 * BLOCK_BYTES
    assert leaving(plan)[-3:] == [(0, 1, "forward"), (1, 2.5, "forward"), (3, 2, "forward")]
    assert predicted_us(request) == 315.0


def test_a_block_that_is_not_full_counts_as_what_it_is():
    # until 150: Delta = 30: three of the nine blocks of 2. Free at 150.
    # until 220: Delta = 50: 1 has two and a half blocks, fewer than five: all. What it really takes
    #            is 25, so 25 is left: ceil(25 / 10) = 3 blocks of 2 (counted as full blocks it
    #            would be two). Free at 150 + 20 + 55 = 225.
    # forward:   0 from 225, the other three blocks of 2.
    request = instance([1, 2.5, 9], (220.0, 150.0, 100.0), (0.0, 50.0, 100.0), 150.0)
    assert windows_of(request) == [[(2, 3)], [(1, 2.5), (2, 3)], [(0, 1)], [(2, 3)]]
    assert DCREDIT.plan(request).links[0].credit_bytes == 5.5 * BLOCK_BYTES


def test_a_window_goes_on_behind_a_last_block_that_does_not_fill_it():
    # until 148: Delta = 28: three of the nine blocks of 2. Free at 150.
    # until 198: Delta = 28: the three blocks of 1 look like enough but take 25, so 3 is left:
    #            ceil(3 / 10) = 1 block of 2. Free at 150 + 20 + 35 = 205.
    request = instance([1, 2.5, 9], (198.0, 148.0, 100.0), (0.0, 50.0, 100.0), 150.0)
    assert windows_of(request) == [[(2, 3)], [(1, 2.5), (2, 1)], [(0, 1)], [(2, 5)]]


@given(requests(linked=True))
def test_any_plan_is_sound(request):
    plan = DCREDIT.plan(request)
    assert_sound(plan, request)
    assert plan.links[0].plan_order
    assert plan.links[0].credit_bytes > 0
    assert DCREDIT.plan(request).hash() == plan.hash()


@given(st.one_of(requests(linked=True), hard_requests(max_count=60)), st.integers(16, 100_000))
def test_windows_are_as_wide_as_the_time_and_no_wider(request, block_bytes):
    tensors, blocks = Tensors.of(request), Blocks.of(block_bytes, request.profile.link)
    found = credit_windows(tensors, blocks)
    slack_us = 1e-6 * (1.0 + request.profile.backward_us)
    last_ready_us = tensors.ready_us[tensors.ready_order[-1]]
    taken = [0] * len(tensors.bytes)
    previous_end_us = 0.0
    for window in found:
        starts_us = window.sent[0].starts_us
        assert starts_us >= previous_end_us
        previous_end_us = starts_us + blocks.time_us(window.bytes)
        for sent in window.sent:
            assert sent.starts_us == starts_us >= tensors.ready_us[sent.tensor]
            taken[sent.tensor] += sent.bytes
        order = [sent.tensor for sent in window.sent]
        assert order == sorted(set(order))
        if starts_us < last_ready_us:
            following_us = min(ready for ready in tensors.ready_us if ready > starts_us)
            fewer = window.bytes - min(blocks.block_bytes, window.sent[-1].bytes)
            assert fewer == 0 or starts_us + blocks.time_us(fewer) <= following_us + slack_us
        else:
            assert len(window.sent) == 1
    assert taken == list(tensors.bytes)
    assert len(found) <= 2 * len(tensors.bytes) - 1


def test_the_smallest_blocks_make_no_more_messages_than_gradients_and_gaps():
    request = replace(many_gradients(), config=Config(tune=False, partition_bytes=1024))
    assert len(DCREDIT.plan(request).buckets) <= 3 * len(request.parameters)
