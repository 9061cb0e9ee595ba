"""Where each parameter is used first."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from deft_horovod.runtime.measure.forward_watch import ForwardWatch


@pytest.fixture
def watched():
    """Makes watches and stops them, as their hooks are global."""
    made = []

    def watch(model):
        made.append(ForwardWatch(list(model.parameters())))
        return made[-1]

    yield watch
    for one in made:
        one.stop()


def gates_of(model, watch):
    names = {module: name for name, module in model.named_modules()}
    parameters = [name for name, _ in model.named_parameters()]
    return {
        parameter: None if gate is None else names[gate]
        for parameter, gate in zip(parameters, watch.gates, strict=True)
    }


def test_the_owner_is_the_gate(watched):
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3)))
    watch = watched(model)
    model(torch.ones(1, 3))
    assert gates_of(model, watch) == {
        "0.weight": "0",
        "0.bias": "0",
        "1.0.weight": "1.0",
        "1.0.bias": "1.0",
    }
    assert watch.roots == (model,)
    times = watch.first_use_us
    assert times[0] < times[2]
    assert watch.forward_us > times[2]


class UsesTheOthersWeight(nn.Module):
    """Takes the weight of a layer before that layer is called."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.late = nn.Linear(3, 3)

    def forward(self, x):
        x = functional.linear(x, self.late.weight)
        return self.late(self.first(x))


def test_who_is_used_before_its_owner_is_called_waits_at_the_root(watched):
    model = UsesTheOthersWeight()
    watch = watched(model)
    model(torch.ones(1, 3))
    assert gates_of(model, watch) == {
        "first.weight": "first",
        "first.bias": "first",
        "late.weight": "",
        "late.bias": "late",
    }
    assert watch.first_use_us[2] == 0.0


class NeverCalls(nn.Module):
    """Uses a child's parameters without ever calling the child; keeps one unused."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.unused = nn.Linear(3, 3)

    def forward(self, x):
        return functional.linear(x, self.inner.weight, self.inner.bias)


def test_owners_that_are_never_called_gate_at_the_root(watched):
    model = NeverCalls()
    watch = watched(model)
    model(torch.ones(1, 3))
    assert set(gates_of(model, watch).values()) == {""}


def test_parameters_of_no_module_have_no_gate(watched):
    loose = nn.ParameterList([nn.Parameter(torch.ones(3))])
    watch = watched(loose)
    nn.Linear(3, 3)(torch.ones(1, 3) * loose[0])
    assert watch.gates == (None,)
    assert watch.first_use_us == (None,)


def test_an_evaluation_says_nothing(watched):
    model = nn.Linear(3, 3)
    watch = watched(model)
    with torch.no_grad():
        model(torch.ones(1, 3))
    assert watch.roots == ()
    assert watch.gates == (None, None)


def test_two_models_are_two_roots(watched):
    one, other = nn.Linear(3, 3), nn.Linear(3, 3)
    watch = watched(nn.ModuleList([one, other]))
    other(one(torch.ones(1, 3)))
    assert watch.roots == (one, other)
    assert watch.gates == (one, one, other, other)


class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x):
        self.inner(x)
        raise RuntimeError("in forward")


def test_a_forward_that_fails_leaves_the_watch_whole(watched):
    model, other = Fails(), nn.Linear(3, 3)
    watch = watched(nn.ModuleList([model, other]))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="in forward"):
            model(torch.ones(1, 3))
    other(torch.ones(1, 3))
    assert watch.roots == (model, other)
    assert watch.gates == (model.inner, model.inner, other, other)


def test_after_stop_nothing_is_watched_and_what_was_seen_stays(watched):
    one, other = nn.Linear(3, 3), nn.Linear(3, 3)
    watch = watched(nn.ModuleList([one, other]))
    one(torch.ones(1, 3))
    watch.stop()
    other(torch.ones(1, 3))
    assert watch.gates == (one, one, None, None)


def test_owners_are_the_modules_that_were_called_with_what_is_theirs(watched):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 3, bias=False)))
    model.append(nn.Module())
    watch = watched(model)
    del model[3]
    model(torch.ones(1, 3))
    assert watch.owners == {model[0]: (0, 1), model[2][0]: (2,)}


def test_what_a_checkpoint_computes_again_is_no_forward(watched):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    watch = watched(model)
    checkpoint(model[0], torch.ones(1, 3, requires_grad=True), use_reentrant=False).sum().backward()
    assert watch.roots == (model[0],)
    assert watch.gates == (model[0], model[0], None, None)


class Compiles:
    """A backend that counts its graphs."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, graph, _):
        self.graphs += 1
        return graph.forward


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        self.last = nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.inner(self.first(x)))


@pytest.mark.filterwarnings("error:Using .torch.compile")
def test_a_compiled_module_is_one_and_is_compiled_once(watched):
    backend, model = Compiles(), Model()
    watch = watched(model)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    for _ in range(2):
        compiled(torch.ones(1, 3)).sum().backward()
    watch.stop()
    compiled(torch.ones(1, 3)).sum().backward()
    assert backend.graphs == 1
    assert watch.roots == (compiled,)
    assert watch.owners == {compiled: tuple(range(8))}
    assert set(watch.gates) == {compiled}
    assert not compiled._forward_hooks


@pytest.mark.filterwarnings("error:Using .torch.compile")
def test_a_compiled_part_is_one_among_others(watched):
    backend, model = Compiles(), Model()
    watch = watched(model)
    model.inner = torch.compile(model.inner, backend=backend)
    for _ in range(2):
        model(torch.ones(1, 3)).sum().backward()
    watch.stop()
    model(torch.ones(1, 3)).sum().backward()
    assert backend.graphs == 1
    assert watch.owners == {model.first: (0, 1), model.inner: (2, 3, 4, 5), model.last: (6, 7)}


def test_a_compiled_module_that_fails_leaves_the_watch_whole(watched):
    model, other = Fails(), nn.Linear(3, 3)
    watch = watched(nn.ModuleList([model, other]))
    compiled = torch.compile(model, backend="eager")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="in forward"):
            compiled(torch.ones(1, 3))
    other(torch.ones(1, 3))
    assert watch.roots == (compiled, other)
    assert watch.gates == (compiled, compiled, other, other)


def test_an_evaluation_of_a_compiled_module_says_nothing(watched):
    model = Model()
    watch = watched(model)
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        compiled(torch.ones(1, 3))
    assert watch.roots == ()
    compiled(torch.ones(1, 3))
    with torch.no_grad():
        compiled(torch.ones(1, 3))
    assert watch.roots == (compiled,)


def test_the_user_s_own_global_hooks_are_still_warned_about(watched):
    watch = watched(nn.Linear(3, 3))
    watch.stop()
    compiled = torch.compile(nn.Linear(3, 3), backend="eager")
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        with pytest.warns(UserWarning, match="global hooks"):
            compiled(torch.ones(1, 3))
    finally:
        handle.remove()


def test_the_result_is_what_it_is_without(watched):
    model = UsesTheOthersWeight()
    expected = model(torch.ones(2, 3))
    watched(model)
    assert torch.equal(model(torch.ones(2, 3)), expected)


def test_another_model_and_a_loss_are_no_roots(watched):
    model, other, loss = nn.Linear(3, 3), nn.Linear(3, 3), nn.MSELoss()
    watch = watched(model)
    x = torch.ones(1, 3)
    loss(model(x), other(x).detach())
    assert watch.roots == (model,)
    other(x)
    assert watch.forward_us > 0.0


def test_a_module_that_keeps_a_model_to_itself_is_no_root(watched):
    class Trainer(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.kept = [model]

        def forward(self, x):
            return self.kept[0](x)

    model = nn.Sequential(nn.Linear(3, 3))
    watch = watched(model)
    Trainer(model)(torch.ones(1, 3))
    assert watch.roots == (model,)
    assert gates_of(model, watch) == {"0.weight": "0", "0.bias": "0"}
