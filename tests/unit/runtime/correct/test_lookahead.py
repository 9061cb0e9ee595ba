import copy

import pytest
import torch

from deft_horovod.runtime.correct.lookahead import Lookahead
from deft_horovod.runtime.reduce.updates import options_of

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
}
EACH = pytest.mark.parametrize("name", OPTIMIZERS)


def trained(name, steps):
    """Parameters after some steps with gradients that are always the same."""
    generator = torch.Generator().manual_seed(0)
    parameters = [torch.randn(n, generator=generator, requires_grad=True) for n in (3, 5, 7)]
    optimizer = OPTIMIZERS[name](parameters)
    for _ in range(steps):
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=generator)
        optimizer.step()
    for p in parameters:
        p.grad = torch.randn(p.shape, generator=generator)
    return parameters, optimizer


def values(parameters):
    return [p.detach().clone() for p in parameters]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def close(one, other):
    """But for the last bits: estimates go through torch's fused kernels."""
    return all(torch.allclose(a, b, rtol=1e-6) for a, b in zip(one, other, strict=True))


@EACH
@pytest.mark.parametrize("steps", [0, 3])
def test_a_cast_moves_as_the_optimizer_would_and_is_undone_to_the_bit(name, steps):
    parameters, optimizer = trained(name, steps)
    before, state = values(parameters), copy.deepcopy(optimizer.state_dict())
    gradients = [p.grad for p in parameters]
    lookahead = Lookahead(optimizer)
    estimates = {p: g.clone() for p, g in zip(parameters, gradients, strict=True)}
    lookahead.cast([(estimates, options_of(optimizer))])
    assert lookahead.is_cast
    predicted = values(parameters)
    assert all(p.grad is g for p, g in zip(parameters, gradients, strict=True))
    lookahead.lift()
    assert not lookahead.is_cast
    assert same(values(parameters), before)
    assert torch.equal(
        torch.cat([t.flatten() for t in tensors_in(optimizer.state_dict())] or [torch.zeros(0)]),
        torch.cat([t.flatten() for t in tensors_in(state)] or [torch.zeros(0)]),
    )
    optimizer.step()
    assert close(values(parameters), predicted)


def tensors_in(state):
    return [
        value
        for _, entries in sorted(state["state"].items())
        for _, value in sorted(entries.items())
        if isinstance(value, torch.Tensor)
    ]


class Nested(torch.optim.SGD):
    """Keeps tensors in a list, as optimizers with factors of each dimension do."""

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    means = self.state[p].setdefault("means", [torch.zeros_like(p)])
                    means[0].lerp_(p.grad, 0.5)
                    p.data.add_(means[0], alpha=-group["lr"])


def test_state_inside_of_containers_stays_what_it_is():
    p = torch.ones(3, requires_grad=True)
    optimizer = Nested([p], lr=0.1)
    p.grad = torch.ones(3)
    optimizer.step()
    lookahead, true = Lookahead(optimizer), optimizer.state[p]["means"][0]
    lookahead.cast([({p: torch.full((3,), 5.0)}, options_of(optimizer))])
    assert not torch.equal(p, torch.full((3,), 0.95))
    lookahead.lift()
    assert optimizer.state[p]["means"][0] is true
    assert torch.equal(true, torch.full((3,), 0.5))


def test_a_state_dict_of_a_cast_is_corrected_without_lifting_it():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = copy.deepcopy(model.state_dict())
    lookahead = Lookahead(optimizer)
    lookahead.cast([({p: torch.ones_like(p) for p in model.parameters()}, options_of(optimizer))])
    predicted = values(model.parameters())
    state = model.state_dict(prefix="model.")
    lookahead.correct(model, state, "model.")
    assert all(torch.equal(state["model." + name], value) for name, value in before.items())
    assert lookahead.is_cast
    assert same(values(model.parameters()), predicted)


@EACH
def test_two_updates_in_flight_are_two_steps(name):
    parameters, optimizer = trained(name, 2)
    first, second = ([torch.full_like(p, x) for p in parameters] for x in (0.3, -0.2))
    lookahead = Lookahead(optimizer)
    options = options_of(optimizer)
    lookahead.cast([(dict(zip(parameters, g, strict=True)), options) for g in (first, second)])
    predicted = values(parameters)
    lookahead.lift()
    for gradients in (first, second):
        for p, g in zip(parameters, gradients, strict=True):
            p.grad = g
        optimizer.step()
    assert close(values(parameters), predicted)


@EACH
def test_parameters_that_are_not_late_stay_where_they_are(name):
    parameters, optimizer = trained(name, 2)
    before = values(parameters)
    lookahead = Lookahead(optimizer)
    lookahead.cast([({parameters[1]: torch.ones(5)}, options_of(optimizer))])
    after = values(parameters)
    assert torch.equal(after[0], before[0])
    assert torch.equal(after[2], before[2])
    assert not torch.equal(after[1], before[1])


def test_a_second_cast_begins_from_the_true_values():
    parameters, optimizer = trained("momentum", 2)
    lookahead = Lookahead(optimizer)
    update = {parameters[0]: torch.ones(3)}, options_of(optimizer)
    lookahead.cast([update])
    once = values(parameters)
    lookahead.cast([update])
    assert same(values(parameters), once)


def test_what_others_have_written_to_stays():
    parameters, optimizer = trained("sgd", 2)
    true = values(parameters)
    lookahead = Lookahead(optimizer)
    lookahead.cast([({p: torch.ones_like(p) for p in parameters}, options_of(optimizer))])
    with torch.no_grad():
        parameters[1].fill_(7.0)
    lookahead.leave_what_changed()
    lookahead.lift()
    assert not lookahead.is_cast
    assert same(values(parameters), [true[0], torch.full((5,), 7.0), true[2]])


def test_nothing_in_flight_is_no_cast():
    _, optimizer = trained("adamw", 1)
    lookahead = Lookahead(optimizer)
    lookahead.cast([])
    assert not lookahead.is_cast
    lookahead.lift()


def test_a_step_that_fails_leaves_everything_as_it_was():
    parameters, optimizer = trained("adamw", 1)
    true = values(parameters)
    state = optimizer.state[parameters[0]]
    before = state["exp_avg"].clone()
    with pytest.raises(TypeError):
        Lookahead(optimizer).cast([({parameters[0]: torch.ones(3)}, [{"lr": "?"}])])
    assert same(values(parameters), true)
    assert optimizer.state[parameters[0]] is state
    assert torch.equal(state["exp_avg"], before)
