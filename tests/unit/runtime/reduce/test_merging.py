"""Sum or mean, by optimizer and option."""

import pytest
import torch
from torch import nn

from deft_horovod.runtime.reduce.merging import divide, merging


@pytest.mark.parametrize(
    ("kind", "mean"),
    [
        (torch.optim.SGD, False),
        (torch.optim.ASGD, False),
        (torch.optim.Adam, True),
        (torch.optim.AdamW, True),
        (torch.optim.RMSprop, True),
        (torch.optim.Adagrad, True),
    ],
)
def test_optimizers_that_adapt_get_the_mean(kind, mean):
    optimizer = kind([nn.Parameter(torch.ones(2))], lr=0.1)
    chosen = merging(optimizer, "auto", "local")
    assert chosen.mean == mean
    assert merging(optimizer, "mean", "local").mean
    assert not merging(optimizer, "sum", "local").mean


def test_the_mean_of_k_steps_has_k_times_the_learning_rate_where_it_is_predicted():
    adam = torch.optim.Adam([nn.Parameter(torch.ones(2))], lr=0.1)
    sgd = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    assert merging(adam, "auto", "local").rate(4) == 4
    assert merging(sgd, "auto", "local").rate(4) == 1  # its sum goes as far
    for option, correction in (("auto", "none"), ("mean", "local"), ("sum", "local")):
        assert merging(adam, option, correction).rate(4) == 1


def test_dividing_leaves_missing_gradients_alone():
    parameters = [nn.Parameter(torch.ones(3)) for _ in range(3)]
    parameters[0].grad = torch.full((3,), 6.0)
    parameters[2].grad = torch.full((3,), 3.0)
    divide(parameters, 3)
    assert parameters[0].grad.tolist() == [2.0] * 3
    assert parameters[1].grad is None
    assert parameters[2].grad.tolist() == [1.0] * 3
    divide([parameters[1]], 2)
