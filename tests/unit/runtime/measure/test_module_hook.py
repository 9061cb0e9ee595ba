import copy
import pickle

import torch
from torch import nn

from deft_horovod.runtime.measure.module_hook import ModuleHook


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
