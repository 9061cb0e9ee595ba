"""When the guard lets updates be late, and when it asks for another plan."""

import logging
from dataclasses import replace

import pytest

from deft_horovod import policies
from deft_horovod.plan.staleness import staleness
from deft_horovod.preserver.cost import Gradients, affordable_turn, lateness
from deft_horovod.preserver.judgement import Judgement
from deft_horovod.runtime.decide.guard import Guard
from deft_horovod.runtime.follower import Wish
from tests.unit.support.boundaries import boundary
from tests.unit.support.models import request as model

BUDGET = 0.02
WINDOW = 100


class Seen:
    """Gradients as a test wants them."""

    def __init__(self):
        self.turn = None
        self.followed = self.begun = self.rested = 0

    def follow(self, members, plan):
        del members, plan
        self.followed += 1

    def begin_anew(self):
        self.begun += 1

    def rest(self):
        assert self.rested < self.begun
        self.rested += 1

    def seen(self, fewest_steps):
        return None if self.turn is None else Gradients(1.0, 1.0, self.turn, 4, fewest_steps)


def guarded(turn, policy="deft", name="vgg19", ccr=1.0, **options):
    """A guard after planning, what it looks at, and its plan."""
    seen = Seen()
    guard = Guard(BUDGET, "local", seen)
    seen.turn = turn
    plan = judge(guard, policy, name, ccr, **options)
    return guard, seen, plan


def judge(guard, policy="deft", name="vgg19", ccr=1.0, **options):
    plan, judgement = guard.judge(policies.get(policy), model(name, ccr, **options))
    guard.judged(judgement)
    guard.follow((), plan)
    return plan


def windows(guard, count=1):
    for _ in range(count * WINDOW):
        wish = guard.end_boundary(boundary())
    return wish is Wish.ANOTHER_PLAN


def late(plan):
    found = lateness(staleness(plan))
    return found.delayed + found.merged


def test_a_plan_within_the_budget_stays_while_gradients_turn_as_before():
    guard, seen, plan = guarded(0.5)
    assert late(plan) > 0.0
    assert guard.stats()["verdict"] == "kept"
    assert not windows(guard, 10)
    # Calmer gradients are no reason for another plan either: it is as late as asked for.
    seen.turn = 0.01
    assert not windows(guard, 10)


def test_what_was_judged_last_says_whether_all_may_be_late():
    guard, seen, _ = guarded(0.5)
    assert guard.allows_all
    guard.judged(None)  # a plan in time
    assert guard.allows_all
    seen.turn = 100.0
    judge(guard)
    assert not guard.allows_all
    assert not Guard(BUDGET, "local", None).allows_all, "nothing was judged"


def test_gradients_that_turn_faster_call_for_another_plan_once_that_lasts():
    guard, seen, plan = guarded(0.5)
    limit = affordable_turn(2 * BUDGET, lateness(staleness(plan)), "local")
    seen.turn = 0.9 * limit
    assert not windows(guard, 4)
    seen.turn = 1.1 * limit
    assert not windows(guard)
    seen.turn = 0.9 * limit
    assert not windows(guard)
    seen.turn = 1.1 * limit
    assert windows(guard, 2)
    plan = judge(guard)
    assert late(plan) == 0.0
    assert guard.stats()["verdict"] == "refused"
    assert guard.stats()["verdicts"] == {"kept": 1, "refused": 1}
    assert guard.end_boundary(boundary()) is Wish.NOTHING


def test_gradients_that_calm_down_let_updates_be_late():
    guard, seen, plan = guarded(5.0)
    assert late(plan) == 0.0
    seen.turn = 4.0
    assert not windows(guard, 4)
    seen.turn = 0.5
    assert windows(guard, 2)
    assert late(judge(guard)) > 0.0


def test_before_anything_was_seen_nothing_is_late_and_then_soon():
    guard, seen, plan = guarded(None)
    assert late(plan) == 0.0
    assert not windows(guard, 3)
    seen.turn = 0.5
    assert windows(guard, 1)
    assert late(judge(guard)) > 0.0


def test_a_limited_plan_is_judged_by_what_it_delays():
    guard, seen, plan = guarded(1.6, "least_stale", "gpt2", max_delay=1)
    assert guard.stats()["verdict"] == "limited"
    assert 0.0 < late(plan) < 1.0
    seen.turn = 1.7
    assert not windows(guard, 4)


def test_other_ranks_hear_what_was_decided_and_look_at_nothing():
    guard = Guard(BUDGET, "local", None)
    judged = Judgement(
        budget=BUDGET, turn=1.0, steps=20, asked_cost=0.01, cost=0.01, verdict="kept"
    )
    guard.judged(judged)
    assert guard.follow((), policies.get("deft").plan(model("vgg19", 1.0))) is None
    assert not windows(guard, 5)
    assert guard.stats() == {**judged.model_dump(), "verdicts": {"kept": 1}}


def test_while_the_plan_may_not_be_late_anyway_nothing_is_asked_for():
    guard, seen, _ = guarded(0.5)
    guard.judged(None)
    seen.turn = 100.0
    assert not windows(guard, 5)
    assert guard.stats()["verdicts"] == {"kept": 1}


@pytest.fixture
def log(caplog):
    """Whatever level others have left."""
    with caplog.at_level(logging.WARNING, "deft_horovod"):
        yield caplog


def test_decisions_stand_in_the_log_with_their_numbers(log):
    guard, seen, _ = guarded(0.5)
    assert "the gradient turns by 0.50 a step" in log.text
    seen.turn = 50.0
    windows(guard, 2)
    assert "turns by 50.00 a step now, when planning it was 0.50" in log.text


def test_a_turn_that_noise_hides_is_said_too(log):
    guarded(0.0)
    assert "too little to be told from noise" in log.text


def test_a_plan_that_is_not_late_says_nothing(log):
    request = model("vgg19", 0.1)
    guard = Guard(BUDGET, "local", Seen())
    _, judgement = guard.judge(policies.get("least_stale"), replace(request))
    guard.judged(judgement)
    assert judgement.verdict == "kept"
    assert not log.text


def test_each_window_stands_for_itself_and_planning_takes_all_there_is():
    guard, seen, _ = guarded(0.5)
    judge(guard)
    assert seen.begun == 0
    windows(guard, 3)
    assert seen.begun == 3


def test_in_a_window_it_looks_long_enough_and_rests_for_most_of_it():
    guard, seen, _ = guarded(0.5)
    looked_at = 0
    for _ in range(5 * WINDOW):
        guard.end_boundary(boundary())
        looked_at += seen.begun > seen.rested
    assert seen.begun == seen.rested == 5
    assert 5 * 20 < looked_at < 5 * WINDOW / 2


def test_the_watch_follows_the_plan_that_runs():
    guard, seen, plan = guarded(0.5)
    assert guard.follow((), plan) is seen
    assert seen.followed == 2


@pytest.mark.parametrize("turn", [0.0, 1e3])
def test_extremes_are_judged_too(turn):
    _, _, plan = guarded(turn)
    assert (late(plan) == 0.0) == (turn > 0.0)
