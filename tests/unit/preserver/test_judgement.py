import pytest

from deft_horovod.preserver.judgement import Judgement


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("kept", "to cost 1.5 % of the loss, within the budget of 2 %"),
        ("limited", "over the budget of 2 %: fewer are late, for 1 %"),
        ("refused", "over the budget of 2 %: all stay synchronous"),
    ],
)
def test_a_judgement_says_what_was_measured_expected_and_done(verdict, said):
    judged = Judgement(
        budget=0.02, turn=1.234, steps=87, asked_cost=0.015, cost=0.01, verdict=verdict
    )
    assert said in judged.describe()
    assert "turns by 1.23 a step (over 87 steps)" in judged.describe()


def test_a_turn_of_zero_is_one_that_nobody_can_see():
    hidden = Judgement(budget=0.02, turn=0.0, steps=40, asked_cost=0.0, verdict="kept").describe()
    assert "turns too little to be told from noise (over 40 steps)" in hidden


def test_before_anything_was_measured_nothing_is_late():
    assert "synchronous until" in Judgement(budget=0.02, verdict="refused").describe()


def test_it_travels_between_ranks_as_text():
    judged = Judgement(budget=0.02, turn=0.5, steps=20, asked_cost=0.1, verdict="limited")
    assert Judgement.model_validate_json(judged.model_dump_json()) == judged
