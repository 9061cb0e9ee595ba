"""How many backward passes make a step."""

import pytest
import torch
from torch import nn

from deft_horovod.runtime.measure.pass_count import PassCount


@pytest.fixture
def model():
    return nn.Linear(3, 2)


def backward(model):
    model(torch.ones(3)).sum().backward()


@pytest.mark.parametrize("passes", [1, 2, 5])
def test_passes_that_add_up(model, passes):
    count = PassCount(list(model.parameters()))
    for _ in range(passes):
        backward(model)
    assert (count.of_gradient, count.total) == (passes, passes)
    count.detach()


def test_what_is_thrown_away_does_not_count(model):
    count = PassCount(list(model.parameters()))
    backward(model)
    model.zero_grad()
    backward(model)
    assert (count.of_gradient, count.total) == (1, 2)
    count.detach()


def test_passes_for_something_else_are_passes(model):
    count = PassCount(list(model.parameters()))
    x = torch.ones(3, requires_grad=True)
    torch.autograd.grad(model(x).sum(), x)
    assert (count.of_gradient, count.total) == (0, 1)
    count.detach()


def test_detached_it_counts_no_more(model):
    count = PassCount(list(model.parameters()))
    count.detach()
    backward(model)
    assert (count.of_gradient, count.total) == (0, 0)
