import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.policies.published.covap import dealt, interval_of
from tests.unit.support.hard_requests import hard_requests
from tests.unit.support.models import request as model

COVAP = policies.get("covap")


@given(st.floats(0, 1e6), st.one_of(st.just(0.0), st.floats(1e-3, 1e6)), st.integers(1, 16))
def test_the_interval_is_the_coverage_rate_rounded_up_within_the_limit(sent_us, compute_us, most):
    interval = interval_of(sent_us, compute_us, most)
    assert 1 <= interval <= most
    if compute_us > 0.0:
        assert interval == min(most, max(1, math.ceil(sent_us / compute_us)))


@given(st.lists(st.floats(0, 1e6), max_size=50), st.integers(1, 8))
def test_no_step_has_a_whole_block_more_to_send_than_another(times_us, interval):
    end_steps = dealt(times_us, interval)
    loads = [
        sum(us for us, end_step in zip(times_us, end_steps, strict=True) if end_step == step)
        for step in range(interval)
    ]
    assert max(loads) - min(loads) <= max(times_us, default=0.0) + 1e-6


@given(hard_requests(max_count=60))
def test_every_block_travels_once_in_the_interval_with_all_it_has_kept(request):
    plan = COVAP.plan(request)
    assert len(plan.generations) == len(plan.buckets)
    for generation in plan.generations:
        assert generation.merged == plan.period
        assert generation.delay == 0
        assert not generation.gated
    assert plan.period <= request.config.max_merge


@pytest.mark.parametrize(("ccr", "interval"), [(0.5, 1), (1.0, 2), (2.0, 3), (9.0, 4)])
def test_slower_links_send_less_often(ccr, interval):
    request = model("resnet101", ccr)
    request = replace(request, config=Config())
    assert COVAP.plan(request).period == interval
