"""When a backward pass begins, as autograd itself sees it."""

import gc
import sys
import threading
import time

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from deft_horovod.runtime.extension import native


@pytest.fixture
def begins():
    """The times at which passes began."""
    times = []
    watch = native.BackwardWatch(lambda: times.append(native.steady_us()))
    yield times
    watch.detach()


class SleepsInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(0.02)
        return gradient


def test_it_begins_before_the_first_node_runs(begins):
    x = torch.ones(3, requires_grad=True)
    loss = SleepsInBackward.apply(x).sum()
    called_us = native.steady_us()
    loss.backward()
    assert len(begins) == 1
    assert begins[0] - called_us < native.steady_us() - begins[0]
    assert native.steady_us() - begins[0] >= 20_000


def test_each_pass_begins_once(begins):
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(5)))
    for _ in range(3):
        model(torch.ones(2, 4)).sum().backward()
    assert len(begins) == 3
    assert begins == sorted(begins)


def test_a_forward_is_no_pass(begins):
    nn.Linear(4, 4)(torch.ones(2, 4)).sum()
    assert begins == []


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_does_not_begin_another_pass(begins, reentrant):
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(4)))
    x = torch.ones(2, 4, requires_grad=True)
    for layer in model:
        x = checkpoint(layer, x, use_reentrant=reentrant)
    x.sum().backward()
    assert model[0].weight.grad is not None
    assert len(begins) == 1


def test_gradients_that_a_forward_computes_are_a_pass_too(begins):
    x = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    gradient.square().sum().backward()
    assert len(begins) == 2


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("in backward")


def test_after_a_pass_that_failed_it_listens_once_it_is_told(begins):
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="in backward"):
        Fails.apply(x).sum().backward()
    native.BackwardWatch.listen()
    (x * 2).sum().backward()
    assert len(begins) == 2


def test_two_watches_see_the_same(begins):
    others = []
    watch = native.BackwardWatch(lambda: others.append(native.steady_us()))
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    watch.detach()
    watch.detach()
    (x * 2).sum().backward()
    assert len(others) == 1
    assert len(begins) == 2


def test_passes_of_other_threads_are_seen(begins):
    x = torch.ones(3, requires_grad=True)
    thread = threading.Thread(target=lambda: (x * 2).sum().backward())
    thread.start()
    thread.join(20)
    assert len(begins) == 1


def test_what_is_dropped_does_not_watch():
    times = []
    watch = native.BackwardWatch(lambda: times.append(0))
    del watch
    gc.collect()
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    assert times == []


def test_an_error_in_the_callback_does_not_stop_training(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    def fail():
        raise ValueError("in the callback")

    watch = native.BackwardWatch(fail)
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    watch.detach()
    assert x.grad is not None
    assert [str(report.exc_value) for report in reported] == ["in the callback"]
