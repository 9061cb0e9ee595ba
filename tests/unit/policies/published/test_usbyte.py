"""The examples are worked out by hand from the published rules; k blocks take 20 + 10 k us.

Gradient 0 is used first. "gap" is the time from when the link is free to the next gradient.
"""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.policies.published.tensor_blocks import Blocks, Tensors, block_sizes
from deft_horovod.policies.published.usbyte import Search
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

USBYTE = policies.get("usbyte")


def predicted_us(request):
    return simulate(USBYTE.plan(request), request.profile).step_us


def test_gaps_are_filled_and_the_rest_leaves_in_forward():
    # until 200: gap 100. All ten blocks of 2 would take 120, so ceil((100 - 20) / 10) = 8 of them.
    # until 300: 1 is the most urgent; its four blocks take 60 and fit: 200 to 260. The gap of 40
    #            that is left fits the other two of 2: 260 to 300.
    # forward: 0 arrives at 300 + 40. Forward goes on from there: 340 + 150 = 490, and no order
    #          could do better, as 0 is ready last and used first.
    request = instance([2, 4, 10], (300.0, 200.0, 100.0), (0.0, 50.0, 100.0), 150.0)
    assert leaving(USBYTE.plan(request)) == [
        (2, 8, "backward"),
        (1, 4, "backward"),
        (2, 2, "backward"),
        (0, 2, "forward"),
    ]
    assert predicted_us(request) == 490.0


def test_a_gradient_is_promoted_where_sending_it_as_a_whole_makes_the_step_shorter():
    # As it is: eight blocks of 2 until 200; all seven of 1 take 90: 200 to 290; the gap of 10 is
    # less than a start-up, so one block of 2: 290 to 320. Forward: 0 at 360, the last block of 2 at
    # 390. t_iter = 360 + 150 = 510.
    # Promotion: sent as a whole from 100 on, 2 would end at 100 + 120 = 220, after 1 is ready (200)
    # and before 0 is (300): k = 1. Before 1 it takes 100 to 220 (the eight blocks until 200 are
    # replaced); the gap of 80 fits ceil(60 / 10) = 6 blocks of 1: 220 to 300. Forward: 0 at 340,
    # the last block of 1 at 370. t_iter = 340 + 150 = 490, so it is kept.
    # Then l = k = 1: from 220 on it would end at 310, after 0 is ready: k = 0, which changes
    # nothing, since 0 leaves in forward.
    request = instance([2, 7, 10], (300.0, 200.0, 100.0), (0.0, 50.0, 100.0), 150.0)
    assert leaving(USBYTE.plan(request)) == [
        (2, 10, "backward"),
        (1, 6, "backward"),
        (0, 2, "forward"),
        (1, 1, "forward"),
    ]
    assert predicted_us(request) == 490.0


def test_a_promotion_that_gains_nothing_is_refused():
    # 1 has two blocks and half of one.
    # until 60:  gap 10 is less than a start-up: one block of 3: 50 to 80.
    # until 160: gap 80: 2 as a whole takes 50: 80 to 130. Gap 30: ceil(10 / 10) = 1 block of 3:
    #            130 to 160.
    # until 200: gap 40: the three blocks of 1 would take 50, so ceil(20 / 10) = 2: 160 to 200.
    # forward:   0: 200 to 230; half a block of 1: 25, to 255; four of 3: 60, to 315.
    # tau_f: 230, max(250, 255) = 255, 275, max(295, 315) = 315. t_iter = 315 + 20 = 335.
    # Promotion: 3 from 50 on would end at 130, after 2 is ready (60) and before 1 is (160): k = 2.
    # Before 2: 3 as a whole, 50 to 130; one block of 2 in the gap of 30, two of 1 until 200.
    # Forward: 230, 255, and two blocks of 2: 40, to 295. tau_f: 230, 255, 295, 315: 335 again.
    # 2 would end at 80 + 50 = 130, before 1 is ready; 1 could only pass 0.
    request = instance([1, 2.5, 3, 6], (200.0, 160.0, 60.0, 50.0), (0.0, 20.0, 40.0, 60.0), 80.0)
    assert leaving(USBYTE.plan(request)) == [
        (3, 1, "backward"),
        (2, 3, "backward"),
        (3, 1, "backward"),
        (1, 2, "backward"),
        (0, 1, "forward"),
        (1, 0.5, "forward"),
        (3, 4, "forward"),
    ]
    assert predicted_us(request) == 335.0


def test_what_cannot_be_gated_is_the_most_urgent_and_one_message_replaces_two():
    # 2 is needed at the boundary, before 0 and 1. Until 200 eight of its blocks would fill the gap
    # of 100. It goes on being the most urgent, so one message from 100 on replaces that one:
    # ceil((200 - 20) / 10) = 18 blocks until 300. Then seven blocks of 2: 90, to 390, when forward
    # may begin; 0: 390 to 430; 1: 430 to 490. tau_f: 430, max(480, 490) = 490.
    # t_iter = 490 + 100 = 590.
    request = instance([2, 4, 25], (300.0, 200.0, 100.0), (0.0, 50.0, None), 150.0)
    assert leaving(USBYTE.plan(request)) == [
        (2, 18, "backward"),
        (2, 7, "backward"),
        (0, 2, "forward"),
        (1, 4, "forward"),
    ]
    assert predicted_us(request) == 590.0


def test_a_gap_of_one_start_up_takes_one_block():
    # ceil(0 / 10) would be none, and the link would never get on.
    request = instance([1, 3], (120.0, 100.0), (0.0, 50.0), 100.0)
    assert leaving(USBYTE.plan(request))[0] == (1, 1, "backward")


@given(requests(linked=True))
def test_any_plan_is_sound(request):
    plan = USBYTE.plan(request)
    assert_sound(plan, request)
    assert plan.links[0].credit_bytes == request.config.credit_bytes
    assert USBYTE.plan(request).hash() == plan.hash()


@given(st.one_of(requests(linked=True), hard_requests(max_count=60)))
def test_the_step_is_what_the_algorithm_reckons_and_never_longer_for_the_search(request):
    """Our timeline and algorithm 2's recurrence agree, so tuning and search have one aim."""
    request = replace(request, config=request.config.model_copy(update={"tune": False}))
    search, tensors = search_of(request)
    best = search.best()
    plain = search.schedule([float(tensor) for tensor in range(len(tensors.bytes))])
    assert best.step_us <= plain.step_us
    assert predicted_us(request) == pytest.approx(best.step_us, rel=1e-9, abs=1e-6)


def search_of(request):
    tensors = Tensors.of(request)
    (size,) = block_sizes(request.config, tensors)
    return Search(request.profile, tensors, Blocks.of(size, request.profile.link)), tensors


@st.composite
def ordered_models(draw):
    """Backward in the reverse order of use, on a link that is about as fast as backward."""
    count = draw(st.integers(2, 12))
    blocks = draw(st.lists(st.integers(1, 24), min_size=count, max_size=count))
    between = draw(st.lists(st.integers(1, 150), min_size=count, max_size=count))
    uses = draw(st.lists(st.integers(0, 60), min_size=count, max_size=count))
    ready = tuple(float(sum(between[index:])) for index in range(count))
    use = tuple(float(sum(uses[:index])) for index in range(count))
    return instance([count / 2 for count in blocks], ready, use, float(sum(uses)))


@given(ordered_models())
@settings(deadline=None, max_examples=400)
def test_the_search_finds_what_the_published_loops_find(request):
    """Its shortcuts change nothing."""
    search, _ = search_of(request)
    best = search.best()
    sent, step_us = published(request)
    assert best.step_us == pytest.approx(step_us)
    assert [(tensor, size) for tensor, size, _ in best.sent] == sent


def published(request):
    """Algorithms 1 to 3 as three plain loops, block by block, each schedule from scratch."""
    count = len(request.parameters)
    priority = list(range(count))
    sent, first, t_iter = published_schedule(request, priority)
    ready = [*request.profile.ready_us]
    tensor = count - 1
    while tensor > 0:
        following = tensor - 1
        if tensor in first:
            ends = first[tensor] + duration(request.parameters[tensor].bytes + 16)
            passed = max((k for k in range(count) if ready[k] >= ends), default=-1) + 1
            if passed < tensor:
                trial = promoted(priority, tensor, passed)
                found = published_schedule(request, trial)
                if found[2] < t_iter:
                    priority, following = trial, passed
                    sent, first, t_iter = found
        tensor = following
    return sent, t_iter


def promoted(priority, tensor, passed):
    low, high = priority[passed], priority[tensor]
    shifted = [rank + 1 if low <= rank < high else rank for rank in priority]
    shifted[tensor] = low
    return shifted


def published_schedule(request, priority):
    count, profile = len(request.parameters), request.profile
    left = [parameter.bytes + 16 for parameter in request.parameters]
    sent, first, ends, free, first_of_last = [], {}, {}, 0.0, 0.0
    for tensor in range(count - 1, -1, -1):
        while free < profile.ready_us[tensor] and any(left[tensor + 1 :]):
            one = min(
                (other for other in range(tensor + 1, count) if left[other]),
                key=lambda other: priority[other],
            )
            size, starts = 0, free
            if sent and sent[-1][0] == one:
                size, starts = sent.pop()[1], first_of_last
                left[one] += size
            gap = profile.ready_us[tensor] - starts
            size = take(gap, left[one])
            sent.append((one, size))
            left[one] -= size
            first_of_last = starts
            first.setdefault(one, starts)
            ends[one] = free = starts + duration(size)
        free = max(free, profile.ready_us[tensor])
    t_forward = 0.0
    for tensor in range(count):
        if left[tensor]:
            sent.append((tensor, left[tensor]))
            ends[tensor] = free = free + duration(left[tensor])
        if tensor:
            t_forward += profile.first_use_us[tensor] - profile.first_use_us[tensor - 1]
        t_forward = max(t_forward, profile.backward_us, ends[tensor])
    return sent, first, t_forward + profile.forward_us - profile.first_use_us[-1]


def take(gap_us, left_bytes):
    """D blocks, in bytes."""
    count = math.ceil(left_bytes / BLOCK_BYTES)
    if gap_us < COST.alpha_us:
        count = 1
    elif gap_us < COST.alpha_us + 10.0 * count:
        count = max(1, math.ceil((gap_us - COST.alpha_us) / 10.0))
    return min(left_bytes, count * BLOCK_BYTES)


def duration(size_bytes):
    return COST.alpha_us + 10.0 * size_bytes / BLOCK_BYTES


def test_the_search_is_bounded_where_gradients_are_many(monkeypatch):
    request = replace(many_gradients(alpha_us=0.1), config=Config(tune=False, partition_bytes=1024))
    tried, schedule = [], Search.schedule
    monkeypatch.setattr(
        Search, "schedule", lambda self, urgency: tried.append(1) or schedule(self, urgency)
    )
    plan = USBYTE.plan(request)
    assert 100 < len(tried) - 1 <= 125  # of 2,000
    assert len(plan.buckets) <= 3 * len(request.parameters)
