"""Gates over real modules, with a reducer that is only a list."""

import gc
import os
import weakref
from dataclasses import dataclass

import horovod.torch as stock
import pytest
import torch
from torch import nn

from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.reduce.gates import Gates
from deft_horovod.runtime.reduce.updates import options_of


@dataclass(eq=False)
class FakeDue:
    slots: tuple


class FakeReducer:
    """Everything is there as soon as somebody waits; the average is 1."""

    def __init__(self, model):
        self.members = tuple(
            NamedParameter(name, tensor) for name, tensor in model.named_parameters()
        )
        self.arenas = [torch.full_like(member.tensor, 0.5) for member in self.members]
        self.session = self
        self.taken = []

    def members_of(self, dues):
        return {slot for due in dues for slot in due.slots}

    def tensors_by_rate(self, dues):
        return {1: [self.members[slot].tensor for slot in sorted(self.members_of(dues))]}

    def show(self, dues):
        for slot in self.members_of(dues):
            self.members[slot].tensor.grad = self.arenas[slot]

    def take(self, dues):
        for due in dues:
            self.taken.append(due.slots)
            for slot in due.slots:
                self.members[slot].tensor.grad = self.arenas[slot].fill_(1.0)


class Held:
    """Two layers of two parameters each; the weights of layer 1 are cut over two messages."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        self.before = [p.detach().clone() for p in self.model.parameters()]
        self.inner = torch.optim.SGD(self.model.parameters(), lr=1.0)
        self.reducer = FakeReducer(self.model)
        modules = [self.model[0], self.model[0], self.model[1], self.model[1]]
        self.gates = Gates(self.inner, self.reducer, modules, [self.model])
        self.gates.hold([FakeDue((0, 1)), FakeDue((2,)), FakeDue((2, 3))], options_of(self.inner))

    def updated(self):
        """By how much each parameter has moved so far."""
        pairs = zip(self.before, self.model.parameters(), strict=True)
        return [round(float((b - p.detach()).mean()), 5) for b, p in pairs]


@pytest.fixture
def held():
    made = Held()
    yield made
    made.gates.close()


def test_each_gate_opens_before_its_module_and_not_earlier(held):
    seen = []
    held.model[0].register_forward_hook(lambda *_: seen.append(held.updated()))
    held.model(torch.ones(1, 2))
    assert seen == [[1.0, 1.0, 0.0, 0.0]]
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]
    held.model(torch.ones(1, 2))
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]  # once, not at every forward
    assert sorted(held.reducer.taken) == [(0, 1), (2,), (2, 3)]


def test_the_forward_uses_what_was_updated(held):
    plain = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    for parameter, before in zip(plain.parameters(), held.before, strict=True):
        parameter.data = before - 1.0
    assert torch.equal(held.model(torch.ones(1, 2)), plain(torch.ones(1, 2)))


def test_a_parameter_in_two_messages_is_updated_when_both_are_there(held):
    held.gates.open([2])
    assert held.updated() == [0.0, 0.0, 1.0, 1.0]  # its second message has the bias too


def test_parts_of_a_parameter_wait_for_the_rest(held):
    whole = FakeDue((0, 1))
    first, second = FakeDue((2,)), FakeDue((2, 3))
    held.gates.hold([whole, first, second], options_of(held.inner))
    held.gates.open([3])
    assert held.reducer.taken == [(2, 3)]
    assert held.updated() == [0.0, 0.0, 0.0, 1.0]
    held.gates.open_all()
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]


def test_gradients_of_the_user_come_back(held):
    mine = torch.full_like(held.model[0].weight, 7.0)
    held.model[0].weight.grad = mine
    held.gates.open_all()
    assert held.model[0].weight.grad is mine
    assert held.model[1].weight.grad is None
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]


def test_the_options_are_those_of_the_boundary(held):
    held.inner.param_groups[0]["lr"] = 0.25
    held.gates.open_all()
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]
    assert held.inner.param_groups[0]["lr"] == 0.25


class FailsInTheMiddle(nn.Module):
    def forward(self, _):
        raise RuntimeError("in forward")


def test_what_is_left_after_the_forward_is_applied_also_when_it_failed(held):
    held.gates.close()
    model = nn.Sequential(held.model[0], FailsInTheMiddle(), held.model[1])
    modules = [model[0], model[0], model[2], model[2]]
    gates = Gates(held.inner, held.reducer, modules, [model])
    gates.hold([FakeDue((0, 1)), FakeDue((2, 3))], options_of(held.inner))
    with pytest.raises(RuntimeError, match="in forward"):
        model(torch.ones(1, 2))
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]
    gates.close()


def test_a_wait_that_fails_is_not_begun_again_and_loses_nothing(held, monkeypatch):
    waits = []

    def take(dues):
        waits.append(dues)
        raise TimeoutError("nobody came")

    mine = torch.full_like(held.model[0].weight, 7.0)
    held.model[0].weight.grad = mine
    monkeypatch.setattr(held.reducer, "take", take)
    with pytest.raises(TimeoutError, match="nobody came"):
        held.model(torch.ones(1, 2))
    assert len(waits) == 1
    assert held.model[0].weight.grad is mine
    assert held.updated() == [0.0, 0.0, 0.0, 0.0]
    monkeypatch.undo()
    held.model(torch.ones(1, 2))
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]


def test_a_checkpoint_has_every_update(held):
    state = held.model.state_dict()
    assert torch.equal(state["1.weight"], held.before[2] - 1.0)


def test_a_model_that_is_loaded_stays_as_it_was_loaded(held):
    loaded = {name: torch.zeros_like(p) for name, p in held.model.state_dict().items()}
    held.gates.hold([FakeDue((0, 1)), FakeDue((2, 3))], options_of(held.inner))
    held.model.load_state_dict(loaded)
    held.gates.open_all()
    assert all(not p.any() for p in held.model.parameters())


def test_after_a_failure_of_horovod_loading_drops_what_is_held(held, monkeypatch):
    def take(_):
        raise stock.HorovodInternalError("the peer died")

    loaded = {name: torch.zeros_like(p) for name, p in held.model.named_parameters()}
    monkeypatch.setattr(held.reducer, "take", take)
    held.model.load_state_dict(loaded)
    monkeypatch.undo()
    held.model(torch.ones(1, 2))
    assert not any(p.any() for p in held.model.parameters())


def test_after_close_modules_are_free(held):
    held.gates.close()
    held.model(torch.ones(1, 2))
    assert held.reducer.taken == []
    assert not held.model[0]._forward_pre_hooks
    assert not held.model._forward_hooks
    assert not held.model._state_dict_pre_hooks
    assert not held.model._load_state_dict_pre_hooks


def test_between_steps_whoever_takes_a_parameter_finds_it_updated(held):
    held.gates.watch()
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]
    with torch.no_grad():
        held.model[0].weight.zero_()
    held.model(torch.ones(1, 2))
    assert not held.model[0].weight.any()  # no update came after it


def test_a_forward_opens_gate_by_gate_also_when_uses_are_watched(held):
    held.gates.watch()
    test_each_gate_opens_before_its_module_and_not_earlier(held)


def test_an_error_outside_of_forward_comes_at_the_next_gate(held, monkeypatch):
    def take(_):
        raise stock.HorovodInternalError("the peer died")

    held.gates.watch()
    monkeypatch.setattr(held.reducer, "take", take)
    assert held.updated() == [0.0, 0.0, 0.0, 0.0]
    monkeypatch.undo()
    with pytest.raises(stock.HorovodInternalError, match="the peer died"):
        held.model(torch.ones(1, 2))
    held.gates.open_all()
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]


def test_a_process_forked_in_between_waits_for_nothing(held, monkeypatch):
    held.gates.watch()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert held.updated() == [0.0, 0.0, 0.0, 0.0]
    monkeypatch.undo()
    held.model(torch.ones(1, 2))
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]


def test_gradients_are_where_the_averages_arrive_and_stay_there(held):
    held.gates.watch()
    assert [id(p.grad) for p in held.model.parameters()] == [id(a) for a in held.reducer.arenas]
    assert float(held.model[0].weight.grad.sum()) == 4.0  # the operation waited for them
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]
    assert [id(p.grad) for p in held.model.parameters()] == [id(a) for a in held.reducer.arenas]


@pytest.mark.parametrize("to_zero", [True, False])
def test_gradients_that_are_cleared_stay_cleared_and_nobody_waits_for_them(held, to_zero):
    held.gates.watch()
    held.gates.forget_gradients(to_zero=to_zero)
    held.inner.zero_grad(set_to_none=not to_zero)
    assert held.reducer.taken == []
    held.model(torch.ones(1, 2))
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]
    gradients = [p.grad for p in held.model.parameters()]
    assert all(g is not None and not g.any() if to_zero else g is None for g in gradients)


def test_a_forked_child_neither_waits_nor_updates(held, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    held.model(torch.ones(1, 2))
    assert held.reducer.taken == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "use",
    [
        lambda model, x: torch.func.jacrev(model)(x),
        lambda model, x: torch.export.export(model, (x,)),
        lambda model, x: torch.jit.trace(model, x)(x),
    ],
    ids=["jacrev", "export", "trace"],
)
def test_transforms_of_the_model_change_no_update(held, use):
    held.gates.watch()
    use(held.model, torch.ones(1, 2))
    assert held.updated() == [1.0, 1.0, 1.0, 1.0]


def test_after_close_nothing_is_watched(held):
    held.gates.watch()
    held.gates.close()
    assert held.updated() == [0.0, 0.0, 0.0, 0.0]


def test_watching_keeps_no_gates_alive():
    made = Held()
    made.gates.watch()
    gone = weakref.ref(made.gates)
    made.gates.close()
    model = made.model
    del made
    gc.collect()
    assert gone() is None
    assert model(torch.ones(1, 2)).shape == (1, 2)
