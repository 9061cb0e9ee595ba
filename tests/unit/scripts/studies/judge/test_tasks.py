"""What the study of harm trains, by its parts."""

import pytest

from deft_horovod.base.parameter import stays_exact
from scripts.studies.judge.tasks import JUDGED


@pytest.mark.parametrize("name", JUDGED)
def test_parts_are_a_growing_share_of_the_model(name):
    judged = JUDGED[name]
    names = [name for name, _ in judged.task.model().named_parameters()]
    late = [{one for one in names if one.startswith(judged.late(parts))} for parts in (0, 1, 2, -1)]
    assert late[0] < late[1] < late[2] < late[3] == set(names)
    assert {names[0]} <= late[1]
    assert 0.2 < len(late[2]) / len(names) < 0.8


@pytest.mark.parametrize("name", JUDGED)
def test_most_of_a_model_may_be_rounded(name):
    sizes = dict(JUDGED[name].task.model().named_parameters())
    rounded = sum(p.numel() for key, p in sizes.items() if not stays_exact(key, p.shape))
    assert rounded > 0.5 * sum(p.numel() for p in sizes.values())


def test_the_large_model_has_25_million_parameters():
    sizes = [p.numel() for p in JUDGED["large gpt"].task.model().parameters()]
    assert 25e6 < sum(sizes) < 26e6


def test_some_tasks_are_held_out_and_some_are_not():
    assert {judged.held_out for judged in JUDGED.values()} == {True, False}
