"""When the learning rate is low enough for `auto` to try late updates, and when no longer."""

import logging
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.decide.rate_watch import CALM, RateWatch, may_become_late
from deft_horovod.runtime.follower import Wish
from deft_horovod.runtime.reduce.loss_scale import LossScales
from tests.unit.support.boundaries import boundary
from tests.unit.support.solo import Solo, as_ranks

BUDGET = {"accuracy_budget": 0.02}


def brief_of(policy="auto", purpose="train", **options):
    return Brief(policies.get(policy), Config(**options), reduction_of(2), None, purpose)


def reduction_of(ranks):
    return SimpleNamespace(process_set=SimpleNamespace(size=lambda: ranks))


def optimizer_of(*rates, **fields):
    groups = [
        {"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate, **fields} for rate in rates
    ]
    return torch.optim.SGD(groups, lr=1.0)


def step_of(watch, late):
    """Whether the ranks have to agree anew."""
    return watch.end_boundary(boundary(late=late)) is Wish.ANOTHER_PLAN


class Training:
    """Asks whenever it is told to, as the control does."""

    def __init__(self, *rates, agreement=None, ranks=2, **fields):
        self.optimizer = optimizer_of(*rates, **fields)
        self.ranks = ranks
        reduction = SimpleNamespace(process_set=SimpleNamespace(size=lambda: self.ranks))
        self.watch = RateWatch(
            self.optimizer, replace(brief_of(**BUDGET), reduction=reduction), LossScales()
        )
        self.agreement = agreement or Solo()
        self.asked = 0

    def step(self, *rates, late=True):
        for group, rate in zip(self.optimizer.param_groups, rates, strict=False):
            group["lr"] = rate
        if step_of(self.watch, late=late and self.watch.calm):
            self.asked += 1
            assert self.watch.agree(self.agreement, corrected=True), "who asks has a reason"
        return self.watch.calm


def test_late_updates_wait_until_the_rate_has_fallen():
    training = Training(1.0)
    rates = (1.0, 0.9, 0.76, CALM[0], 0.1)
    assert [training.step(rate) for rate in rates] == [False] * 3 + [True] * 2
    assert training.asked == 1
    assert training.watch.brief.limits.max_delay == 1


def test_where_late_updates_were_refused_they_are_tried_once_more():
    training = Training(1.0)
    rates = (1.0, 0.7, 0.6, CALM[1], 0.4, 0.1)
    assert [training.step(rate, late=False) for rate in rates] == [False] + [True] * 5
    assert training.asked == 2


def test_where_they_run_nobody_asks_again():
    training = Training(1.0)
    for rate in (1.0, 0.7, 0.3):
        training.step(rate)
    assert not training.watch.agree(training.agreement, corrected=True), "asked for other reasons"
    assert training.asked == 1


def test_a_rate_that_rises_is_not_low():
    """Not even where a schedule has said how high it will get."""
    training = Training(0.01, initial_lr=1.0)
    assert not any(training.step(0.01 * step) for step in range(1, 101))
    assert not training.step(0.8)
    assert training.step(0.75)


def test_a_resumed_job_knows_from_its_schedule_where_it_began():
    training = Training(0.3, initial_lr=1.0)
    assert not training.step(0.3)
    assert training.step(0.29)
    assert not Training(0.3).step(0.29), "without a schedule nothing is known"


def test_all_groups_have_to_be_low():
    training = Training(1.0, 0.1, 0.0)
    assert not training.step(1.0, 0.1, 0.0)
    assert not training.step(0.1, 0.1, 0.0)
    assert training.step(0.1, 0.05, 0.0), "a rate that is always zero trains nothing"


def test_once_the_rate_rises_again_it_is_over_for_good():
    training = Training(1.0)
    assert [training.step(rate) for rate in (1.0, 0.4, 0.45, 0.49)] == [False, True, True, False]
    assert training.watch.brief.limits.max_delay == 0
    assert not any(training.step(rate) for rate in (0.3, 1.0, 0.1))
    assert training.asked == 2


def test_late_updates_that_gained_nothing_are_not_tried_at_a_lower_rate():
    training = Training(1.0)
    training.step(1.0)
    training.watch.gained_nothing()
    assert training.step(0.7), "nothing was tried yet"
    training.watch.gained_nothing()
    assert training.asked == 1
    assert all(training.step(rate) for rate in (0.6, 0.4, 0.1))
    assert training.asked == 1
    assert not training.step(1.0), "a rate that rises counts as before"


def test_groups_may_be_added():
    training = Training(1.0)
    training.step(1.0)
    training.optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.5})
    assert not training.step(0.2)
    assert training.step(0.2, 0.3)


def test_rates_on_an_accelerator_are_not_waited_for():
    training = Training(1.0)
    training.step(1.0)
    training.optimizer.param_groups[0]["lr"] = torch.zeros((), device="meta")
    assert not training.step()
    training.optimizer.param_groups[0]["lr"] = torch.tensor(0.5)
    assert training.step()


def test_a_rank_that_came_later_goes_along():
    """It has not seen the highest rate; in an elastic job that may be."""

    def rank(agreement):
        watch = RateWatch(optimizer_of(1.0), brief_of(**BUDGET), LossScales())
        if agreement.deciding:
            step_of(watch, late=False)
        watch._inner.param_groups[0]["lr"] = 0.4
        assert step_of(watch, late=False) == agreement.deciding
        assert watch.agree(agreement, corrected=True)
        assert not step_of(watch, late=True)
        return watch.brief.limits.max_delay

    assert as_ranks(3, rank) == [1, 1, 1]


def test_one_that_can_not_predict_keeps_all_exact():
    def rank(agreement):
        watch = RateWatch(optimizer_of(1.0), brief_of(**BUDGET), LossScales())
        step_of(watch, late=False)
        watch._inner.param_groups[0]["lr"] = 0.4
        assert step_of(watch, late=False)
        assert not watch.agree(agreement, corrected=agreement.deciding)
        assert not step_of(watch, late=False), "asked and answered"
        return watch.calm

    assert as_ranks(2, rank) == [False, False]


def test_with_a_loss_scaler_nobody_asks():
    scales = LossScales()
    watch = RateWatch(optimizer_of(1.0), brief_of(**BUDGET), scales)
    step_of(watch, late=False)
    watch._inner.param_groups[0]["lr"] = 0.4
    assert step_of(watch, late=False)
    scales.asked = True
    assert not step_of(watch, late=False)
    assert not watch.agree(Solo(), corrected=True)


def test_after_a_new_beginning_all_ranks_agree_anew():
    training = Training(1.0)
    training.step(1.0)
    assert training.step(0.4)
    training.watch.forget()
    assert training.watch.brief.limits.max_delay == 0
    assert training.step(0.4)


@pytest.mark.parametrize("initial", [{}, {"initial_lr": 0.4}])
def test_a_rate_that_follows_the_number_of_ranks_has_not_fallen(initial):
    training = Training(0.4, ranks=4, **initial)
    training.step(0.4)
    training.ranks = 3
    rates = (0.3, 0.29, 0.23, 0.2)
    assert [training.step(rate) for rate in rates] == [False, False, False, True]


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_nor_has_one_that_a_reset_brings_back(ranks):
    training = Training(0.4, ranks=4)
    training.step(0.4)
    assert training.step(0.04)
    training.ranks = ranks
    training.watch.forget()
    assert not training.step(0.1 * ranks)


def test_a_rate_that_does_not_follow_them_may_fall_a_little_further():
    training = Training(0.4, ranks=4)
    training.step(0.4)
    training.ranks = 3
    assert [training.step(rate) for rate in (0.4, 0.31, 0.3)] == [False, False, True]


def test_a_restored_late_plan_was_calm():
    training = Training(0.4)
    training.watch.resume()
    assert training.step(0.4)
    assert not training.step(1.0)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_whoever_agrees_does_not_ask_again(rates):
    training = Training(rates[0])
    for rate in rates:
        training.step(rate)
        assert not step_of(training.watch, late=training.watch.calm)
    assert training.asked <= 2


@pytest.mark.parametrize(
    "brief",
    [
        brief_of("least_stale", **BUDGET),
        brief_of("stock", **BUDGET),
        brief_of(purpose="profile", **BUDGET),
        brief_of(),
        brief_of(accuracy="equal"),
        brief_of(accuracy="exact", **BUDGET),
        brief_of(accuracy="fast", **BUDGET),
        brief_of(max_delay=0, **BUDGET),
        brief_of(max_delay=1, **BUDGET),
        brief_of(accuracy_budget=0.0),
        brief_of(plan_file="plan.json", **BUDGET),
        brief_of(second_interface="eth1", **BUDGET),
    ],
)
def test_nobody_is_overruled(brief):
    assert not may_become_late(brief)
    watch = RateWatch(optimizer_of(1.0), brief, LossScales())
    step_of(watch, late=False)
    watch._inner.param_groups[0]["lr"] = 0.01
    assert not step_of(watch, late=False)
    # Asks nobody.
    assert not watch.agree(SimpleNamespace(), corrected=True)
    watch.resume()
    assert watch.brief.limits == brief.limits


def test_it_is_said(caplog):
    training = Training(1.0)
    training.step(1.0)
    with caplog.at_level(logging.WARNING, logger="deft_horovod"):
        training.step(0.45)
        training.step(0.9)
    fallen, risen = (record.getMessage() for record in caplog.records)
    assert "fallen to 45% of its highest, so late updates are tried (max_delay=0" in fallen
    assert "rises again, so all updates come in time" in risen
