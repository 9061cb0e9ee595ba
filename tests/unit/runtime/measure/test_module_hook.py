import copy
import pickle

import pytest
import torch
from torch import nn

from deft_horovod.runtime.measure.module_hook import ModuleHook, after_saving, before_loading


class Counter:
    def __init__(self):
        self.seen = []

    def note(self, what, module, *_):
        self.seen.append((what, module))


def hooked():
    model, counter = nn.Linear(2, 2), Counter()
    model.register_forward_pre_hook(ModuleHook(counter.note, "before"))
    model.register_forward_hook(ModuleHook(counter.note, "after"))
    return model, counter


def test_it_calls_what_it_was_made_of():
    model, counter = hooked()
    model(torch.ones(1, 2))
    assert counter.seen == [("before", model), ("after", model)]


def test_copies_do_nothing():
    model, counter = hooked()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301
        assert torch.equal(other(torch.ones(1, 2)), model(torch.ones(1, 2)))
    assert len(counter.seen) == 4
    assert {module for _, module in counter.seen} == {model}


class Old(nn.Linear):
    """As modules of torch 2.4 are, which lack the public names."""

    @property
    def register_load_state_dict_pre_hook(self):
        raise AttributeError

    @property
    def register_state_dict_post_hook(self):
        raise AttributeError


@pytest.mark.parametrize("kind", [nn.Linear, Old])
def test_state_dicts_have_hooks_with_any_torch(kind):
    model, seen = kind(2, 2), []
    handles = [
        before_loading(model, ModuleHook(lambda *_: seen.append("loading"))),
        after_saving(model, ModuleHook(lambda module, state, prefix, *_: seen.append(prefix))),
    ]
    model.state_dict(prefix="a.")
    model.load_state_dict(model.state_dict())
    assert seen == ["a.", "", "loading"]
    for handle in handles:
        handle.remove()
    model.load_state_dict(model.state_dict())
    assert len(seen) == 3
