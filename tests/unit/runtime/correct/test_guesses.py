import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.correct.guesses import GUESSES, Arrived

NUMBERS = st.lists(st.floats(-10, 10, width=32), min_size=4, max_size=4)
PER_RANK = st.lists(NUMBERS, min_size=1, max_size=5)


def average(gradients):
    return torch.tensor(gradients).mean(0)


@given(PER_RANK)
def test_local_is_exact_in_the_mean_over_ranks(own):
    """The one property that the choice of it rests on."""
    guesses = [GUESSES["local"].guess(torch.tensor(g), None, len(own)) for g in own]
    assert torch.allclose(torch.stack(guesses).mean(0), average(own), atol=1e-5)


@given(PER_RANK)
def test_what_looks_back_is_exact_where_nothing_changes(own):
    mean = average(own)
    for name in ("previous", "own_and_previous"):
        for gradient in own:
            arrived = Arrived(mean, torch.tensor(gradient))
            guess = GUESSES[name].guess(torch.tensor(gradient), arrived, len(own))
            assert torch.allclose(guess, mean, atol=1e-5)


@given(PER_RANK, NUMBERS)
def test_own_and_previous_is_exact_where_the_others_do_not_change(before, now):
    own_before, own = torch.tensor(before[0]), torch.tensor(now)
    guess = GUESSES["own_and_previous"].guess(
        own, Arrived(average(before), own_before), len(before)
    )
    assert torch.allclose(guess, average([now, *before[1:]]), atol=1e-4)


def test_shares_of_this_rank():
    own = torch.tensor([4.0])
    assert GUESSES["own_share"].guess(own, None, 4).tolist() == [1.0]
    assert GUESSES["momentum"].guess(own, None, 4).tolist() == [0.0]


@pytest.mark.parametrize("name", GUESSES)
def test_a_guess_that_looks_back_needs_something_to_look_at(name):
    guess = GUESSES[name].guess(torch.ones(2), None, 2)
    assert (guess is None) == GUESSES[name].looks_back
    assert GUESSES[name].summary
