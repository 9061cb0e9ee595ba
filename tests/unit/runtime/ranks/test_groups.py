import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.errors import ConfigError
from deft_horovod.runtime.ranks.groups import Groups
from deft_horovod.runtime.ranks.named_parameters import NamedParameter


def members(count):
    return [NamedParameter(f"p{i}", torch.zeros(i + 1)) for i in range(count)]


@given(st.integers(1, 12), st.integers(1, 20))
def test_a_number_splits_all_of_them_evenly_and_in_order(count, groups):
    made = Groups.parse(groups).of(members(count))
    assert [i for group in made for i in group] == list(range(count))
    assert len(made) == min(groups, count)
    sizes = [len(group) for group in made]
    assert max(sizes) - min(sizes) <= 1


def test_lists_of_tensors_become_indices_and_the_rest_stays_out():
    listed = members(5)
    tensors = [m.tensor for m in listed]
    groups = Groups.parse([[tensors[3], tensors[1]], [tensors[4]]])
    assert groups.of(listed) == ((3, 1), (4,))


def test_tensors_that_do_not_take_part_are_left_out():
    listed = members(3)
    groups = Groups.parse([[listed[0].tensor, listed[2].tensor], [listed[1].tensor]])
    assert groups.of([listed[0], listed[2]]) == ((0, 1),)


def test_nothing_is_no_groups():
    assert Groups.parse(None).of(members(3)) == ()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "positive number"),
        (-2, "positive number"),
        (True, "positive number"),
        ("two", "positive number"),
        ((1, 2), "positive number"),
        ([["a"]], "torch.Tensor"),
        ([[1, 2]], "torch.Tensor"),
        ([torch.zeros(3)], "list of lists"),
        ([3], "list of lists"),
    ],
)
def test_other_values_are_refused(value, message):
    with pytest.raises(ConfigError, match=message) as caught:
        Groups.parse(value)
    assert "observed:" in str(caught.value)


def test_a_tensor_in_two_groups_is_refused():
    tensor = torch.zeros(2, 3)
    with pytest.raises(ConfigError, match=r"only once") as caught:
        Groups.parse([[tensor], [torch.ones(1), tensor]])
    assert "(2, 3)" in str(caught.value)
