"""A vote: what one rank wants, all get to know, and nobody turns alone."""

import pytest

from deft_horovod.runtime.decide.replan_vote import Reason, ReplanVote, State


class Ranks:
    """The others' answers, beside this rank's."""

    def __init__(self, others=False):
        self.others = others

    def union(self, flags):
        return [flag or self.others for flag in flags]


def test_nothing_is_due_until_all_know():
    vote = ReplanVote()
    vote.want()
    assert not vote.due
    vote.move(State.ASKED)
    assert vote.due


@pytest.mark.parametrize("state", [State.PHASE_OVER, State.ASKED])
@pytest.mark.parametrize("mine", [False, True])
@pytest.mark.parametrize("others", [False, True])
def test_what_any_rank_wants_all_do(state, mine, others):
    vote = ReplanVote()
    if mine:
        vote.want()
    vote.move(state)
    again = mine or others
    assert vote.count(Ranks(others)) == Reason(state is State.ASKED or again, again)
    assert not vote.due
    vote.move(State.PHASE_OVER)
    assert vote.count(Ranks()) == Reason(asked=False, again=False)  # it counts once


@pytest.mark.parametrize(
    "states", [(State.ASKED, State.PHASE_OVER), (State.PHASE_OVER, State.ASKED)]
)
def test_whoever_asked_is_not_forgotten_when_a_phase_ends(states):
    vote = ReplanVote()
    for state in states:
        vote.move(state)
    assert vote.state is State.ASKED


def test_after_a_join_a_rank_still_wants_what_it_wanted():
    vote = ReplanVote()
    vote.want()
    vote.move(State.ASKED)
    vote.withdraw()
    assert not vote.due
    assert vote.count(Ranks()).again
    vote.want()
    vote.clear()
    assert not vote.count(Ranks()).again
