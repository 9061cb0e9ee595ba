import itertools

import torch
from torch import nn

from deft_horovod.runtime.measure.gradient_timestamps import GradientTimestamps


class CountingClock:
    """Its device is where the parameters are, as a GPU would be."""

    def __init__(self, device="cpu"):
        self.device = torch.device(device)
        self._numbers = itertools.count()

    def now(self):
        return next(self._numbers)


def chain():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    return model, list(model.parameters())


def test_each_gradient_leaves_a_moment_in_the_order_of_backward():
    model, tensors = chain()
    moments = GradientTimestamps(tensors, CountingClock())
    model(torch.ones(1, 2)).sum().backward()
    assert moments.take() == {1: 0, 0: 1}
    assert moments.take() == {}
    moments.detach()


def test_of_several_passes_the_last_one_counts():
    model, tensors = chain()
    moments = GradientTimestamps(tensors, CountingClock())
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
    assert moments.take() == {1: 2, 0: 3}
    moments.detach()


def test_parameters_elsewhere_have_none():
    model, tensors = chain()
    moments = GradientTimestamps(tensors, CountingClock("meta"))
    model(torch.ones(1, 2)).sum().backward()
    assert moments.take() == {}
    moments.detach()


def test_after_detach_no_hook_is_left():
    model, tensors = chain()
    moments = GradientTimestamps(tensors, CountingClock())
    moments.detach()
    model(torch.ones(1, 2)).sum().backward()
    assert moments.take() == {}
