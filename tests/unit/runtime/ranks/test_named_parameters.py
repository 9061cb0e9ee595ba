import pytest
import torch

from deft_horovod.errors import ConfigError
from deft_horovod.runtime.ranks.named_parameters import members_of


def tensors(*sizes):
    return [torch.zeros(size) for size in sizes]


def test_members_are_in_the_order_of_the_optimizer():
    a, b, c = tensors(1, 2, 3)
    members = members_of([{"params": [c]}, {"params": [a, b]}], [("a", a), ("b", b), ("c", c)])
    assert [m.name for m in members] == ["c", "a", "b"]
    assert [m.tensor for m in members] == [c, a, b]


def test_without_names_the_place_is_the_name():
    a, b, c = tensors(1, 2, 3)
    members = members_of([{"params": [a, b]}, {"params": [c]}], None)
    assert [m.name for m in members] == [f"allreduce.noname.{i}" for i in ("0.0", "0.1", "1.0")]


def test_names_of_parameters_of_others_do_no_harm():
    a, b = tensors(1, 2)
    assert [m.name for m in members_of([{"params": [a]}], [("b", b), ("a", a)])] == ["a"]


def test_an_iterator_is_read_once():
    a, b = tensors(1, 2)
    assert len(members_of([{"params": [a, b]}], iter([("a", a), ("b", b)]))) == 2


def test_duplicate_names_are_refused():
    a, b, c = tensors(1, 2, 3)
    with pytest.raises(ConfigError) as caught:
        members_of([{"params": [a, b, c]}], [("w", a), ("w", b), ("c", c)])
    assert "tensor 'w'" in str(caught.value)
    assert "must be unique" in str(caught.value)
    assert "prefix" in str(caught.value)


@pytest.mark.parametrize("listed", [[torch.zeros(1)], ["name"], [("a",)], [(1, torch.zeros(1))]])
def test_other_things_than_pairs_are_refused(listed):
    with pytest.raises(ConfigError, match=r"tuples \(name, parameter\)") as caught:
        members_of([{"params": tensors(1)}], listed)
    assert "model.named_parameters()" in str(caught.value)


def test_parameters_without_a_name_are_listed():
    parameters = tensors(1, 2, 3, 4, 5, 6, 7, 8)
    with pytest.raises(ConfigError) as caught:
        members_of([{"params": parameters}], [("first", parameters[0])])
    message = str(caught.value)
    assert "7 without a name" in message
    assert "group 0, parameter 1, shape (2,)" in message
    assert "and 2 more" in message
