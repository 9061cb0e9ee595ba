"""Updates of parts add up to the update of the whole, bit for bit."""

import copy

import pytest
import torch
from torch import nn

from deft_horovod.runtime.reduce.updates import (
    in_one_pass,
    options_of,
    update_only,
)

MAKERS = {
    "SGD": lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Nesterov": lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda groups: torch.optim.Adam(groups, lr=0.01),
    "AMSGrad": lambda groups: torch.optim.Adam(groups, lr=0.01, amsgrad=True, foreach=True),
    "AdamW": lambda groups: torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1),
    "Adagrad": lambda groups: torch.optim.Adagrad(groups, lr=0.1, lr_decay=0.01),
    "RMSprop": lambda groups: torch.optim.RMSprop(groups, lr=0.01, momentum=0.5),
    "NAdam": lambda groups: torch.optim.NAdam(groups, lr=0.01),
}


def make(name, seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2))
    groups = [
        {"params": list(model[0].parameters())},
        {"params": [*model[1].parameters(), *model[2].parameters()], "lr": 0.05},
    ]
    return model, MAKERS[name](groups)


def give_gradients(model, step):
    torch.manual_seed(step)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)


def same(model, other):
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return all(torch.equal(mine, theirs) for mine, theirs in pairs)


@pytest.mark.parametrize("name", MAKERS)
def test_parts_add_up_to_the_whole(name):
    model, optimizer = make(name)
    whole, reference = make(name)
    parameters = list(model.parameters())
    for step in range(5):
        give_gradients(model, step)
        give_gradients(whole, step)
        reference.step()
        options = options_of(optimizer)
        for part in (
            parameters[4:5],
            parameters[1:3],
            [parameters[0], *parameters[5:], parameters[3]],
        ):
            update_only(optimizer, part, options)
        assert same(model, whole)
    assert len(optimizer.param_groups[1]["params"]) == 4


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_the_options_are_those_of_the_boundary(name):
    model, optimizer = make(name)
    whole, reference = make(name)
    give_gradients(model, 1)
    give_gradients(whole, 1)
    then = options_of(optimizer)
    reference.step()
    for group in optimizer.param_groups:
        group["lr"] = 99.0  # a scheduler steps before the gate opens
    update_only(optimizer, list(model.parameters()), then)
    assert same(model, whole)
    assert [group["lr"] for group in optimizer.param_groups] == [99.0, 99.0]


def test_a_group_that_was_added_since_is_not_updated():
    model, optimizer = make("SGD")
    then = options_of(optimizer)
    late = nn.Parameter(torch.ones(2))
    late.grad = torch.ones(2)
    optimizer.add_param_group({"params": [late], "lr": 1.0})
    give_gradients(model, 0)
    update_only(optimizer, [*model.parameters(), late], then)
    assert late.tolist() == [1.0, 1.0]
    assert optimizer.param_groups[2]["params"] == [late]


def test_the_groups_come_back_when_the_update_fails():
    model, optimizer = make("SGD")
    before = copy.copy(optimizer.param_groups[0])
    give_gradients(model, 0)
    options = options_of(optimizer)
    options[0]["lr"] = "much"
    with pytest.raises(TypeError):
        update_only(optimizer, list(model.parameters()), options)
    assert optimizer.param_groups[0] == before


def test_hooks_of_the_step_do_not_run_again():
    model, optimizer = make("SGD")
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("pre"))
    optimizer.register_step_post_hook(lambda *_: calls.append("post"))
    give_gradients(model, 0)
    update_only(optimizer, list(model.parameters())[:1], options_of(optimizer))
    assert calls == []
    optimizer.step()
    assert calls == ["pre", "post"]


@pytest.mark.parametrize(
    "inside", [torch.inference_mode, lambda: torch.autocast("cpu", dtype=torch.bfloat16)]
)
def test_an_update_inside_of_a_forward_is_the_same(inside):
    model, optimizer = make("Adam")
    whole, reference = make("Adam")
    for step in range(2):
        give_gradients(model, step)
        give_gradients(whole, step)
        reference.step()
        with inside():
            update_only(optimizer, list(model.parameters()), options_of(optimizer))
    assert same(model, whole)
    assert not any(p.is_inference() for p in model.parameters())
    exp_avg = optimizer.state[next(model.parameters())]["exp_avg"]
    assert not exp_avg.is_inference()


def test_nothing_to_update_is_no_step():
    _, optimizer = make("Adam")
    update_only(optimizer, [], options_of(optimizer))
    assert optimizer.state == {}


def fused(name, tensors=None, **options):
    model, optimizer = make(name)
    optimizer.param_groups[0].update(options)
    tensors = tensors or list(model.parameters())
    found = in_one_pass(optimizer, tensors, options_of(optimizer))
    return [bool(group.get("fused")) for group in found]


@pytest.mark.parametrize("name", ["SGD", "Nesterov", "Adam", "AdamW"])
def test_in_one_pass_an_update_is_the_same_but_for_its_last_bits(name):
    assert fused(name) == [True, True]
    model, optimizer = make(name)
    reference, step_by_step = make(name)
    for step in range(3):
        for one in (model, reference):
            give_gradients(one, step)
        update_only(
            optimizer,
            list(model.parameters()),
            in_one_pass(optimizer, list(model.parameters()), options_of(optimizer)),
        )
        step_by_step.step()
    for mine, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-7)
    assert not any(group["fused"] for group in optimizer.param_groups)


@pytest.mark.parametrize("told", ["foreach", "differentiable"])
def test_what_the_user_chose_stays(told):
    assert fused("Adam", **{told: True}) == [False, True]
    assert fused("AMSGrad") == [False, False]


def test_one_pass_is_only_for_what_torch_has_it_for():
    assert fused("RMSprop") == [False, False]
    assert fused("Adam", [torch.zeros(2, dtype=torch.float64)]) == [False, False]

    class Mine(torch.optim.Adam):
        """Its step may be another one."""

    parameter = nn.Parameter(torch.zeros(2))
    optimizer = Mine([parameter])
    options = options_of(optimizer)
    assert in_one_pass(optimizer, [parameter], options) is options


def test_some_with_momentum_and_some_without_go_one_by_one():
    model, optimizer = make("SGD")
    parameters = list(model.parameters())
    give_gradients(model, 0)
    update_only(optimizer, parameters[:2], options_of(optimizer))
    options = options_of(optimizer)
    assert in_one_pass(optimizer, parameters, options) is options
    update_only(optimizer, parameters, options)
