"""The C++ gradient hooks under real autograd, in one process."""

import gc
import weakref

import pytest
import torch
from torch import nn

from deft_horovod.runtime.extension import native


def collector_of(module, passes=1):
    names, tensors = zip(*module.named_parameters(), strict=True)
    return native.Collector(list(tensors), list(names), passes)


def chain(layers=3):
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(layers)))


def backward(model, rows=2):
    model(torch.ones(rows, 4)).sum().backward()


def test_the_order_is_that_of_backward():
    model = chain()
    seen = []
    for i, parameter in enumerate(model.parameters()):
        parameter.register_post_accumulate_grad_hook(lambda _, i=i: seen.append(i))
    collector = collector_of(model)
    assert not collector.any()
    assert collector.collected().order == []
    backward(model)
    collected = collector.collected()
    assert collected.order == seen
    assert sorted(collected.order) == list(range(6))
    assert {4, 5} == set(collected.order[:2])  # the last layer comes first
    times = [collected.ready_us[i] for i in collected.order]
    assert times == sorted(times)
    assert times[0] == 0.0
    assert times[-1] == collected.backward_us
    assert collector.any()
    assert collector.complete()


def test_gradients_are_what_they_are_without_hooks():
    model, other = chain(), chain()
    collector = collector_of(model)
    backward(model)
    backward(other)
    assert collector.complete()
    for mine, plain in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine.grad, plain.grad)


def test_what_got_no_gradient_is_not_in_the_order():
    model = chain(2)
    collector = collector_of(model)
    model[0](torch.ones(1, 4)).sum().backward()
    collected = collector.collected()
    assert sorted(collected.order) == [0, 1]
    assert collected.ready_us[2:] == [-1.0, -1.0]


def test_a_reset_begins_a_new_window():
    model = chain()
    collector = collector_of(model)
    backward(model)
    collector.reset()
    assert not collector.any()
    assert not collector.complete()
    assert collector.collected().order == []
    backward(model)
    assert sorted(collector.collected().order) == list(range(6))


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_it_counts_backward_passes(passes):
    model = chain(1)
    collector = collector_of(model, passes)
    for done in range(1, passes + 1):
        backward(model)
        assert collector.any()
        assert collector.complete() == (done == passes)
    assert sorted(collector.collected().order) == [0, 1]


@pytest.mark.parametrize("passes", [1, 2])
def test_a_pass_too_many_is_an_error_that_says_what_to_do(passes):
    model = chain(1)
    collector = collector_of(model, passes)
    for _ in range(passes):
        backward(model)
    with pytest.raises(RuntimeError, match=r"more than backward_passes_per_step") as caught:
        backward(model)
    assert f"backward_passes_per_step = {passes}" in str(caught.value)
    assert "0.weight" in str(caught.value) or "0.bias" in str(caught.value)
    assert "Call step() after every" in str(caught.value)
    collector.reset()
    backward(model)  # it goes on after a reset


def test_the_number_of_passes_can_change():
    model = chain(1)
    collector = collector_of(model)
    collector.set_passes_per_step(2)
    backward(model)
    assert not collector.complete()
    backward(model)
    assert collector.complete()


def test_sparse_gradients_are_told_apart():
    model = nn.Sequential(nn.Embedding(5, 4, sparse=True), nn.Linear(4, 4))
    collector = collector_of(model)
    model(torch.tensor([1, 2])).sum().backward()
    assert collector.collected().sparse == [0]
    collector.reset()
    assert collector.collected().sparse == []


def test_after_detach_nothing_is_seen():
    model = chain()
    collector = collector_of(model)
    collector.detach()
    collector.detach()
    backward(model)
    assert not collector.any()


def test_a_dead_collector_leaves_no_trace():
    model = chain()
    collector = collector_of(model)
    watch = weakref.ref(model[0].weight)
    del collector
    backward(model)
    assert model[0].weight.grad is not None
    del model
    gc.collect()
    assert watch() is None


def test_two_of_them_do_not_disturb_each_other():
    model = chain(1)
    one, other = collector_of(model), collector_of(model, 2)
    backward(model)
    assert one.complete()
    assert not other.complete()
    one.detach()
    backward(model)
    assert other.complete()


def test_a_parameter_without_gradient_is_refused_by_name():
    model = chain(1)
    model[0].bias.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"0\.bias does not require a gradient"):
        collector_of(model)


def test_it_notices_a_parameter_that_is_frozen():
    model = chain(1)
    collector = collector_of(model)
    assert collector.all_train()
    model[0].bias.requires_grad_(False)
    assert not collector.all_train()


def test_a_shared_parameter_has_one_gradient_a_pass():
    model = chain(1)
    collector = collector_of(model)
    hidden = model(torch.ones(1, 4))
    model(hidden).sum().backward()
    assert sorted(collector.collected().order) == [0, 1]


def test_checkpointed_and_double_backward_count_once():
    model = chain(2)
    collector = collector_of(model)
    out = torch.utils.checkpoint.checkpoint(model, torch.ones(2, 4), use_reentrant=False)
    out.sum().backward()
    assert sorted(collector.collected().order) == [0, 1, 2, 3]
    collector.reset()
    inputs = torch.ones(2, 4, requires_grad=True)
    loss = model(inputs).pow(2).sum()
    (slope,) = torch.autograd.grad(loss, inputs, create_graph=True)
    assert not collector.any()  # grad() accumulates nothing
    slope.pow(2).sum().backward()
    assert collector.any()
