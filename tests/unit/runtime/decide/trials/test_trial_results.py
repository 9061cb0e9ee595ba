"""What all ranks together make of the trials."""

import pytest

from deft_horovod.profile import Profile
from deft_horovod.runtime.decide.trials.far_behind import StepRange
from deft_horovod.runtime.decide.trials.trial_results import comparison, fastest, slow

STOCK, OURS = ("stock", False), ("deft", True)
ROUNDS = {STOCK: [[5.0, 7.0], [6.0, 5.0]], OURS: [[3.0, 3.0], [2.0, 4.0]]}


class Two:
    """An agreement of two ranks, of which the other is slower in every second step."""

    def gather(self, numbers):
        return [list(numbers), [us + (1.0 if i % 2 else -1.0) for i, us in enumerate(numbers)]]


@pytest.mark.parametrize(
    ("asked", "min_gain", "chosen"), [("deft", 0.9, 1), ("auto", 0.9, 0), ("auto", 0.02, 1)]
)
def test_the_slowest_rank_makes_the_step_and_auto_takes_the_fastest(asked, min_gain, chosen):
    found = comparison(Two(), asked, min_gain, ROUNDS, {}, Profile.assumed(1))
    assert [arm.name for arm in found.arms] == ["stock", "deft (late)"]
    assert found.baseline.rounds_us == ((5.0, 8.0), (6.0, 6.0))
    assert found.arms[1].rounds_us == ((3.0, 4.0), (2.0, 5.0))
    assert found.chosen == chosen


def test_the_fastest_is_that_of_the_slowest_rank_and_noise_asks_for_more():
    clear = {STOCK: [[50.0, 51.0] * 2, [50.0, 51.0] * 2], OURS: [[30.0, 31.0] * 2] * 2}
    assert fastest(Two(), clear, 0.02) == (OURS, [])
    noisy = {
        STOCK: [[50.0, 90.0] * 2, [50.0, 60.0] * 2],
        OURS: [[80.0, 50.0] * 2, [60.0, 40.0] * 2],
    }
    _, again = fastest(Two(), noisy, 0.02)
    assert again == [STOCK, OURS]
    few = {who: [one[:2] for one in rounds] for who, rounds in noisy.items()}
    assert fastest(Two(), few, 0.02)[1] == []


def test_whoever_is_too_slow_on_every_rank_has_no_further_turn():
    far = {STOCK: [[90.0, 92.0, 91.0]], OURS: [[30.0, 31.0, 30.0]]}
    assert slow(Two(), far, {}) == {STOCK}
    near = {STOCK: [[90.0, 92.0, 91.0]], OURS: [[30.0, 73.0, 30.0]]}
    assert slow(Two(), near, {}) == frozenset()
    few = {who: [one[:2] for one in rounds] for who, rounds in far.items()}
    assert slow(Two(), few, {}) == frozenset()
    left_early = {**far, STOCK: [[]]}
    assert slow(Two(), left_early, {}) == frozenset()


def test_whoever_had_no_turn_is_only_too_slow_if_the_baseline_is_as_well():
    untried = {("bucket", False): StepRange(80.0)}
    far = {STOCK: [[90.0, 92.0, 91.0]], OURS: [[30.0, 31.0, 30.0]]}
    assert slow(Two(), far, untried) == {STOCK, *untried}
    near = {STOCK: [[40.0, 42.0, 41.0]], OURS: [[30.0, 31.0, 30.0]]}
    assert slow(Two(), near, untried) == frozenset()
    assert slow(Two(), far, {("bucket", False): StepRange(38.0)}) == {STOCK}
