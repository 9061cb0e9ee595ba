"""Ways in which gradients may travel."""

from deft_horovod.runtime.decide.rate_watch import CALM
from scripts.studies.judge.arms import ARMS, EXACT_ARM, IN_USE, NULL


def test_exact_training_comes_first_and_all_others_differ_from_it():
    assert next(iter(ARMS)) == EXACT_ARM
    assert len(set(ARMS.values())) == len(ARMS)


def test_the_floor_of_chance_neither_rounds_nor_delays():
    assert not ARMS[NULL].rounds
    assert not ARMS[NULL].late.late


def test_those_in_use_are_what_the_product_does():
    assert set(IN_USE) <= ARMS.keys()
    low = {ARMS[name].late.below for name in IN_USE} - {1.0}
    assert low == {CALM[0]}
    assert all(ARMS[name].feedback for name in IN_USE)
