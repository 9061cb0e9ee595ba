"""Names from modules."""

import torch
from torch import nn

from deft_horovod.profile import Profile, Tensor
from deft_horovod.runtime.ranks.parameter_names import renamed


def names(tensors, roots):
    profile = Profile.assumed(len(tensors)).model_copy(
        update={
            "tensors": tuple(
                Tensor(name=f"noname.0.{i}", shape=tuple(t.shape), dtype="float32")
                for i, t in enumerate(tensors)
            )
        }
    )
    return [tensor.name for tensor in renamed(profile, tensors, roots).tensors]


def test_one_module_gives_its_own_names():
    model = nn.Sequential(nn.Linear(2, 3))
    assert names(list(model.parameters()), [model]) == ["0.weight", "0.bias"]


def test_a_compiled_module_is_called_as_before():
    model = nn.Sequential(nn.Linear(2, 3))
    compiled = torch.compile(model, backend="eager")
    assert names(list(model.parameters()), [compiled]) == ["0.weight", "0.bias"]


def test_several_modules_are_told_apart():
    roots = [nn.Linear(2, 3), nn.Linear(3, 4), nn.Embedding(5, 6)]
    tensors = [p for root in roots for p in root.parameters()]
    assert names(tensors, roots) == [
        "Linear1.weight",
        "Linear1.bias",
        "Linear2.weight",
        "Linear2.bias",
        "Embedding.weight",
    ]


def test_what_is_in_no_module_keeps_its_name():
    model = nn.Linear(2, 3)
    assert names([torch.zeros(1), model.bias], [model]) == ["noname.0.0", "bias"]
    assert names([model.bias], []) == ["noname.0.0"]


def test_a_shared_parameter_has_its_first_name():
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    model = nn.Sequential(first, second)
    assert names([first.weight], [model]) == ["0.weight"]
