import threading

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from deft_horovod.runtime.measure.module_timer import ModuleTimer, in_backward
from deft_horovod.runtime.measure.timestamps import HostClock


@pytest.fixture
def timed():
    made = []

    def timer(*modules):
        made.append(ModuleTimer(modules, HostClock()))
        return made[-1]

    yield timer
    for one in made:
        one.detach()


def lines(calls):
    """(module, outer) of each call; each has left no earlier than it was entered."""
    for entered, left in zip(calls.entered, calls.left, strict=True):
        assert left >= entered
    return list(zip(calls.modules, calls.outer, strict=True))


def nest():
    inner = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    return nn.Sequential(inner, nn.Linear(2, 2)), inner


def test_calls_come_in_the_order_in_which_they_began_with_the_call_around_them(timed):
    model, inner = nest()
    timer = timed(model, inner, inner[1], model[1])
    model(torch.ones(1, 2))
    calls = timer.take()
    assert lines(calls) == [(0, -1), (1, 0), (2, 1), (3, 0)]
    assert not calls.evaluated
    assert timer.take().modules == []


def test_a_module_that_is_called_twice_has_two_calls(timed):
    model, inner = nest()
    timer = timed(inner)
    for _ in range(2):
        model(torch.ones(1, 2))
    assert lines(timer.take()) == [(0, -1), (0, -1)]


def test_an_evaluation_is_noticed_and_not_timed(timed):
    model, inner = nest()
    timer = timed(model, inner)
    with torch.no_grad():
        model(torch.ones(1, 2))
    model(torch.ones(1, 2))
    calls = timer.take()
    assert calls.evaluated
    assert lines(calls) == [(0, -1), (1, 0)]
    assert not timer.take().evaluated


class Frozen(nn.Module):
    """Computes one of its layers without gradients."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        with torch.no_grad():
            x = self.one(x)
        return self.other(x)


def test_what_a_training_forward_does_without_gradients_is_part_of_it(timed):
    model = Frozen()
    timer = timed(model, model.one, model.other)
    model(torch.ones(1, 2))
    calls = timer.take()
    assert lines(calls) == [(0, -1), (1, 0), (2, 0)]
    assert not calls.evaluated


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_checkpoint_computes_again_is_not_timed(timed, reentrant):
    layer = nn.Linear(2, 2)
    timer = timed(layer)
    x = torch.ones(1, 2, requires_grad=True)
    with_gradients = checkpoint(layer, x, use_reentrant=reentrant)
    first = timer.take()
    with_gradients.sum().backward()
    again = timer.take()
    # A reentrant checkpoint runs its forward without gradients.
    assert first.evaluated is reentrant
    assert len(first.modules) == (0 if reentrant else 1)
    assert again.modules == []
    assert not again.evaluated
    assert not in_backward()


class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        self.inner(x)
        raise RuntimeError("in forward")


def test_a_forward_that_fails_leaves_the_timer_whole(timed):
    model, other = Fails(), nn.Linear(2, 2)
    timer = timed(model, model.inner, other)
    with pytest.raises(RuntimeError, match="in forward"):
        model(torch.ones(1, 2))
    other(torch.ones(1, 2))
    assert lines(timer.take()) == [(0, -1), (1, 0), (2, -1)]


def test_other_threads_are_not_timed(timed):
    layer = nn.Linear(2, 2)
    timer = timed(layer)
    thread = threading.Thread(target=layer, args=(torch.ones(1, 2),))
    thread.start()
    thread.join(20)
    assert timer.take().modules == []


def test_a_step_that_ends_inside_a_call_begins_anew(timed):
    layer = nn.Linear(2, 2)
    timer = timed(layer)
    taken = []
    handle = layer.register_forward_pre_hook(lambda *_: taken.append(timer.take()))
    layer(torch.ones(1, 2))
    handle.remove()
    assert taken[0].left == [None]
    assert timer.take().modules == []
    layer(torch.ones(1, 2))
    assert lines(timer.take()) == [(0, -1)]


def test_hooks_that_are_compiled_with_the_module_break_no_graph(timed):
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    model = Frozen()
    timer = timed(model, model.one, model.other)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    compiled(torch.ones(1, 2)).sum().backward()
    assert len(graphs) == 1
    assert timer.take().modules == []


def test_after_detach_nothing_is_timed(timed):
    layer = nn.Linear(2, 2)
    timer = timed(layer)
    timer.detach()
    layer(torch.ones(1, 2))
    assert timer.take().modules == []
    assert not layer._forward_hooks
    assert not layer._forward_pre_hooks
