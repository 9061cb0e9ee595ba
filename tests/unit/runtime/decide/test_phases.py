"""The phases of a job: they follow each other, trials are compared, the choice is by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.comparison import STOCK
from deft_horovod.config import Config
from deft_horovod.runtime.decide.phases import (
    LOOKS,
    Phase,
    Phases,
    choose,
    limits,
    planned_phases,
)

MEASURED = [name for name, policy in policies.registry().items() if policy.measures]
DIRECT = [name for name, policy in policies.registry().items() if not policy.measures]

options = st.fixed_dictionaries(
    {
        "profile_warmup_steps": st.integers(0, 4),
        "profile_steps": st.integers(1, 4),
        "warmup_steps": st.integers(0, 20),
        "trial_steps": st.integers(1, 3),
        "trial_rounds": st.integers(1, 3),
        "max_delay": st.sampled_from([None, 0, 1, 2]),
        "max_merge": st.sampled_from([None, 1, 4]),
    }
)


@pytest.mark.parametrize("policy", DIRECT)
def test_a_policy_that_measures_nothing_runs_at_once(policy):
    assert planned_phases(policy, Config(), 0) == (Phase("settled", policy),)


def test_a_plan_from_a_file_runs_at_once_and_as_late_as_it_says():
    config = Config(plan_file="plan.json")
    assert planned_phases("auto", config, 0) == (Phase("settled", "auto", late=True),)


@given(st.sampled_from(MEASURED), options, st.integers(0, 30))
def test_the_profile_comes_first_and_nothing_is_late_before_the_warm_up_is_over(
    policy, given_options, done
):
    config = Config(**given_options)
    phases = planned_phases(policy, config, done)
    assert phases[0].kind == "profile"
    assert phases[0].policy == STOCK
    steps = done
    for phase in phases:
        if phase.late:
            assert limits(policy, config).late
            assert steps >= config.warmup_steps
        steps += phase.steps
    assert all(phase.steps > 0 for phase in phases[:-1])


@given(options, st.sampled_from([None, "equal", "fast"]), st.floats(1, 1e6))
def test_walking_the_phases_of_auto_tries_every_candidate_as_often(given_options, word, step_us):
    config = Config(**given_options, accuracy=word)
    phases = Phases("auto", config)
    seen = {}
    while phases.phase.kind != "settled":
        for step in range(phases.phase.steps):
            assert phases.step(step_us) == (step == phases.phase.steps - 1)
        if phases.phase.kind == "trial":
            key = (phases.phase.policy, phases.phase.late)
            seen[key] = seen.get(key, 0) + phases.phase.steps - 1
        phases.end_phase()
        if phases.undecided:
            assert set(phases.trials) == set(seen)
            assert {sum(map(len, rounds)) for rounds in phases.rounds.values()} == {
                config.trial_rounds * config.trial_steps
            }
            assert (("fewest_bytes", False) in seen) == (word is not None)
            assert set(seen.values()) == {config.trial_rounds * config.trial_steps}
            phases.keep(*choose(phases.trials, config.min_gain))
        else:
            phases.proceed()
    assert phases.phase == Phase("settled", STOCK)  # all take the same time, so nothing is gained
    assert not phases.step(step_us)


def test_a_rank_that_has_left_early_catches_up():
    phases = Phases(MEASURED[0], Config(profile_warmup_steps=2, profile_steps=3))
    phases.step(1.0)
    assert not phases.catch_up(4)
    assert phases.step(1.0)
    assert phases.catch_up(7)


times = st.dictionaries(
    st.tuples(st.sampled_from(["bucket", "priority", "least_stale"]), st.booleans()),
    st.floats(1.0, 1e6),
    max_size=5,
)


@given(st.floats(1.0, 1e6), times, st.floats(0.0, 0.5))
def test_the_choice_gains_enough_or_is_stock(stock_us, others, min_gain):
    measured = {(STOCK, False): stock_us, **others}
    chosen = choose(measured, min_gain)
    fastest = min(measured.values())
    if chosen == (STOCK, False):
        assert fastest >= stock_us * (1 - min_gain) - 1e-6
    else:
        assert fastest <= stock_us * (1 - min_gain) + 1e-6
        assert measured[chosen] <= stock_us * (1 - min_gain) * (1 + min_gain / 2) + 1e-6
        rivals = [us for who, us in measured.items() if chosen[1] or not who[1]]
        assert measured[chosen] <= min(rivals) * (1 + min_gain / 2) + 1e-6
        in_time = {who: us for who, us in measured.items() if not who[1]}
        kept = measured[choose(in_time, min_gain)]  # were nothing late
        late = [us for who, us in measured.items() if who[1]]
        if chosen[1]:
            assert min(late) <= kept * (1 - min_gain) + 1e-6
        elif late:
            assert min(late) >= kept * (1 - min_gain) - 1e-6


def test_what_is_late_has_to_gain_as_much_over_what_is_not():
    in_time, late = ("fewest_bytes", False), ("least_stale", True)
    assert choose({(STOCK, False): 200.0, in_time: 70.0, late: 69.0}, 0.02) == in_time
    assert choose({(STOCK, False): 200.0, in_time: 70.0, late: 68.0}, 0.02) == late


def test_more_rounds_are_for_training_and_come_to_an_end():
    again = [(STOCK, False), ("least_stale", False)]
    phases = Phases("auto", Config(trial_steps=2))
    while not phases.undecided:
        phases.proceed()
    rounds = 0
    while phases.try_again(again):
        assert [phases.phase.policy, phases.phase.kind] == [STOCK, "trial"]
        phases.proceed()
        assert phases.phase == Phase("trial", "least_stale", steps=3)
        assert phases.undecided
        rounds += 1
    assert 1 <= rounds < 10
    phases.restart(0)
    assert phases.try_again(again)
    assert not Phases("auto", Config(), purpose="compare").try_again(again)


@pytest.mark.parametrize("policy", ["stock", "auto", MEASURED[0]])
def test_whoever_wants_a_profile_only_stays_with_stock_horovod(policy: str) -> None:
    config = Config(profile_warmup_steps=2, profile_steps=3, warmup_steps=50, max_delay=1)
    phases = Phases(policy, config, purpose="profile")
    assert phases.phase == Phase("profile", STOCK, steps=5)
    assert [phases.step(1.0) for _ in range(5)] == [False, False, False, False, True]
    phases.proceed()
    assert phases.phase == Phase("settled", STOCK)
    phases.restart(0)
    assert phases.phase.kind == "profile"


def walked(phases, step_us):
    """To the end of its trials; what ran on the way."""
    seen = []
    while True:
        seen.append((phases.phase.kind, phases.phase.policy, phases.phase.late))
        for _ in range(phases.phase.steps):
            phases.step(step_us)
        phases.end_phase()
        if phases.undecided:
            return seen
        phases.proceed()


@given(options, st.sampled_from(["stock", "bucket", "least_stale"]))
def test_late_updates_are_tried_against_what_runs_once_gradients_were_looked_at(
    given_options, running
):
    config = Config(**{**given_options, "max_delay": None, "max_merge": None})
    phases = Phases("auto", config)
    walked(phases, 100.0)
    phases.keep(running, late=False)
    before = {**phases.trials}
    phases.try_late()
    assert (phases.phase.kind, phases.phase.late) == ("warmup", False)
    assert phases.phase.policy == (running if running != STOCK else "least_stale")
    assert phases.phase.steps >= 20
    seen = walked(phases, 50.0)
    tried = [("trial", running, False), ("trial", "least_stale", True)]
    assert seen[1:] == tried * config.trial_rounds
    # The others have the times that they had.
    fresh = {(running, False): 50.0, ("least_stale", True): 50.0}
    assert phases.trials == {**before, **fresh}


CANDIDATES = [
    (name, False) for name in ("fewest_bytes", STOCK, "bucket", "priority", "least_stale")
]
UNTRIED = {("bucket", False), ("priority", False)}


@given(options, st.sets(st.sampled_from(CANDIDATES)))
def test_those_that_are_dropped_have_no_further_turn_and_the_others_have_all(given_options, slow):
    given_options = {**given_options, "trial_rounds": 3, "max_delay": 0, "max_merge": 1}
    phases = Phases("auto", Config(**given_options, accuracy="equal"))
    seen, dropped_at = [], {}
    while True:
        if phases.phase.kind == "trial":
            seen.append(phases.phase.who)
        phases.end_phase()
        if phases.may_drop:
            assert phases.untried == UNTRIED - set(seen) - set(dropped_at)
            # How long stock takes is known from its profile, and of two others it is predicted.
            now = {who for who in slow if who in seen or who in UNTRIED or who[0] == STOCK}
            phases.drop(now)
            dropped_at |= {who: len(seen) for who in now - set(dropped_at)}
        if phases.undecided:
            break
        phases.proceed()
    for who, place in dropped_at.items():
        assert who not in seen[place:]
    left = [who for who in CANDIDATES if who not in dropped_at]
    if len(left) > 1:
        assert [who for who in seen if who in left] == 3 * left
    for who in left:  # one that is left alone has a turn, but not against nobody
        assert who in seen
        assert len(left) > 1 or seen[max(dropped_at.values()) :].count(who) <= 1
    assert all(seen.count(who) for who in {*CANDIDATES} - UNTRIED - {(STOCK, False)})


def test_what_rounds_has_its_turn_early_and_ranks_last_of_what_is_in_time():
    phases = Phases("auto", Config(accuracy="equal", max_delay=1, warmup_steps=0, trial_rounds=1))
    turns = [who for kind, *who in walked(phases, 1.0) if kind == "trial"]
    assert turns[:2] == [["fewest_bytes", False], [STOCK, False]]
    harm = [STOCK, "bucket", "priority", "least_stale", "fewest_bytes"]
    assert [*phases.rounds] == [*((name, False) for name in harm), ("least_stale", True)]


def test_the_profile_stands_for_stocks_turn_until_it_has_one():
    config = Config(accuracy="equal", profile_warmup_steps=2, profile_steps=3, trial_steps=4)
    phases = Phases("auto", config)
    for us in (900.0, 900.0, 300.0, 301.0, 302.0):
        phases.step(us)
    assert not phases.rounds
    phases.end_phase()
    phases.proceed()
    assert phases.rounds == {(STOCK, False): [[300.0, 301.0, 302.0]]}
    walked(phases, 100.0)
    assert phases.rounds[STOCK, False] == config.trial_rounds * [[100.0] * 4]
    phases.restart(0)
    assert not phases.rounds


def test_where_nothing_is_tried_a_profile_is_no_trial():
    for policy, purpose in ((MEASURED[0], "train"), ("auto", "profile")):
        phases = Phases(policy, Config(warmup_steps=0, max_delay=1), purpose=purpose)
        while phases.phase.kind == "profile":
            phases.step(1.0)
            phases.end_phase()
            phases.proceed()
        assert not phases.trials


def test_a_rank_that_leaves_early_has_the_same_candidates():
    phases = Phases("auto", Config(accuracy="equal"))
    assert phases.catch_up(100)
    phases.end_phase()
    assert phases.rounds == {(STOCK, False): [[]]}
    assert not phases.trials


def test_people_who_compare_want_all_rounds():
    phases = Phases("auto", Config(), purpose="compare")
    while not phases.undecided:
        phases.end_phase()
        assert not phases.may_drop
        phases.proceed()


def walk(phases, *steps_us):
    for us in steps_us:
        phases.step(us)


@pytest.mark.parametrize(
    ("seen", "steady"),
    [
        ([100.0] * 5, True),
        ([100.0, 105.0, 102.0, 100.0, 101.0], True),
        ([100.0, 900.0, 102.0, 100.0, 101.0], True),  # one was held up
        ([100.0, 106.0] * 3, False),
    ],
)
def test_a_profile_may_end_once_its_steps_are_steady(seen, steady):
    phases = Phases("auto", Config(profile_warmup_steps=3, profile_steps=10))
    walk(phases, 900.0, 500.0, 300.0)  # of a cold machine
    assert not phases.is_steady  # nothing is known
    walk(phases, *seen[:5])
    assert phases.may_end
    assert phases.is_steady is steady
    # All ranks ask at the same boundaries, and what counts are the last five steps.
    for us, again in ((700.0, None), (600.0, False), (100.0, False), (100.0, False)):
        walk(phases, us)
        assert phases.may_end
        assert again in (None, phases.is_steady)
    walk(phases, 100.0)
    assert not phases.may_end  # it is over
    assert not phases.is_steady


@pytest.mark.parametrize(
    ("options", "purpose"),
    [
        ({"profile_steps": 5}, "train"),
        ({"profile_steps": 3}, "train"),
        ({"max_delay": 1, "max_merge": 1}, "train"),
        ({}, "profile"),
    ],
)
def test_a_profile_is_whole_if_it_is_short_or_wanted_or_keeps_updates_in_time(options, purpose):
    phases = Phases("auto", Config(profile_warmup_steps=0, **options), purpose=purpose)
    for _ in range(phases.phase.steps):
        assert not phases.may_end
        phases.step(100.0)


def test_no_other_phase_ends_before_its_time():
    phases = Phases("auto", Config(trial_steps=20, profile_steps=1, profile_warmup_steps=0))
    phases.proceed()
    for _ in range(20):
        phases.step(100.0)
        assert not phases.may_end


@pytest.mark.parametrize("step_us", [10_000.0, 60_000.0])
def test_a_warm_up_leaves_time_for_the_plan_of_late_updates(step_us):
    late = Phases("least_stale", Config(max_delay=1, warmup_steps=100))
    assert late.plan_ahead(step_us) is None  # it is being profiled
    late.proceed()
    slow = step_us * 87 > 2e6
    assert late.plan_ahead(step_us) == (late.phases[-1] if slow else None)
    late.proceed()
    assert late.plan_ahead(step_us) is None
    asked = Phases("auto", Config(max_delay=1, warmup_steps=100))
    asked.proceed()  # trials of others come before those of late updates
    found = asked.plan_ahead(step_us)
    assert (None if found is None else found.who) == (("least_stale", True) if slow else None)
    auto = Phases("auto", Config(accuracy="equal"))
    for _ in auto.phases[1:]:
        assert auto.plan_ahead(step_us) is None  # nothing runs beside what is measured
        auto.proceed()
    auto.keep("fewest_bytes", False)
    auto.try_late()
    slow = step_us * LOOKS > 2e6
    found = auto.plan_ahead(step_us)
    assert (None if found is None else found.who) == (("least_stale", True) if slow else None)
