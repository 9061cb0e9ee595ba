"""Sums are given up where a script throws steps away again and again."""

from __future__ import annotations

import logging

import horovod.torch as stock
import pytest

from deft_horovod.plan import Generation, Plan
from deft_horovod.runtime.reduce.thrown_away import ThrownAway


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


def plan_with(*merged):
    """As much of a plan as is looked at."""
    generations = tuple(Generation(bucket=i, last_step=k - 1) for i, k in enumerate(merged))
    return Plan.model_construct(generations=generations)


def test_a_few_steps_may_be_thrown_away(caplog):
    counted, plan = ThrownAway(), plan_with(1, 2)
    with caplog.at_level(logging.WARNING, logger="deft_horovod"):
        assert [counted.one_more(plan) for _ in range(4)] == [False, False, True, False]
    assert not counted.sums
    assert [record.message for record in caplog.records if "no steps are summed" in record.message]


def test_steps_that_cost_no_sum_do_not_count():
    counted = ThrownAway()
    for _ in range(10):
        assert not counted.one_more(None)
        assert not counted.one_more(plan_with(1, 1))
    assert counted.sums
