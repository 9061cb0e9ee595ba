import torch
from torch import nn

from deft_horovod.profile import LinkCost
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.ranks.named_parameters import NamedParameter


def watched(model, passes=1, watch_forward=True):
    members = tuple(NamedParameter(name, tensor) for name, tensor in model.named_parameters())
    return members, Observer(members, passes, watch_forward)


def train(model, observer, inputs=None):
    model(torch.ones(2, 3) if inputs is None else inputs).sum().backward()
    observer.end_step()


def two_layers():
    return nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))


def test_a_step_becomes_a_profile():
    model = two_layers()
    members, observer = watched(model)
    assert not observer.experienced
    train(model, observer)
    link = LinkCost(alpha_us=1.0, beta_us_per_byte=0.5)
    profile = observer.profile(members, link)
    assert observer.experienced
    assert sorted(profile.ready_order[:2]) == [2, 3]  # the last layer's gradients come first
    assert profile.first_use_us[0] < profile.first_use_us[2]
    assert profile.forward_us > 0
    assert profile.link == link
    observer.detach()


def test_indices_are_those_of_the_members_asked_for():
    model = two_layers()
    members, observer = watched(model)
    train(model, observer)
    profile = observer.profile([members[3], members[0]], None)
    assert profile.ready_order == (0, 1)
    assert profile.ready_us[0] < profile.ready_us[1]
    assert profile.first_use_us[1] < profile.first_use_us[0]
    observer.detach()


def test_what_got_no_gradient_is_last_in_the_order():
    model = two_layers()
    members, observer = watched(model)
    model[1](torch.ones(1, 3)).sum().backward()
    observer.end_step()
    profile = observer.profile(members, None)
    assert sorted(profile.ready_order[:2]) == [2, 3]
    assert profile.ready_order[2:] == (0, 1)
    assert profile.ready_us[0] == profile.backward_us
    assert profile.first_use_us[0] is None
    observer.detach()


def test_owners_and_the_last_step_can_be_asked_for():
    model = two_layers()
    _, observer = watched(model)
    assert observer.last is None
    train(model, observer)
    assert observer.owners == {model[0]: (0, 1), model[1]: (2, 3)}
    assert sorted(observer.last.order) == [0, 1, 2, 3]
    observer.detach()


def test_before_the_first_step_a_profile_is_assumed():
    members, observer = watched(two_layers())
    assert observer.profile(members, None).ready_order == (3, 2, 1, 0)
    observer.detach()


def test_without_watching_the_forward_there_are_no_gates():
    model = two_layers()
    members, observer = watched(model, watch_forward=False)
    train(model, observer)
    assert observer.gates(members) == [None] * 4
    assert observer.roots == ()
    assert observer.profile(members, None).first_use_us == (None,) * 4
    observer.detach()


def test_gates_are_found_by_member():
    model = two_layers()
    members, observer = watched(model)
    train(model, observer)
    assert observer.gates([members[2], members[1]]) == [model[1], model[0]]
    assert observer.roots == (model,)
    observer.detach()


def test_frozen_parameters_are_not_watched():
    model = two_layers()
    model[0].weight.requires_grad_(False)
    members, observer = watched(model)
    assert [m.name for m in observer.members] == ["0.bias", "1.weight", "1.bias"]
    assert not observer.outdated(members)
    observer.detach()


def test_it_notices_who_trains_by_now():
    model = two_layers()
    model[0].weight.requires_grad_(False)
    members, observer = watched(model)
    model[0].weight.requires_grad_(True)
    assert observer.outdated(members)
    model[0].weight.requires_grad_(False)
    assert not observer.outdated(members)
    model[1].bias.requires_grad_(False)
    assert observer.outdated(members)
    model[1].bias.requires_grad_(True)
    assert observer.outdated((*members, NamedParameter("new", nn.Parameter(torch.ones(1)))))
    observer.detach()


def test_sparse_gradients_of_the_last_step():
    model = nn.Sequential(nn.Embedding(4, 3, sparse=True), nn.Linear(3, 3))
    _, observer = watched(model)
    assert observer.sparse() == [False, False, False]
    train(model, observer, torch.tensor([1, 2]))
    assert observer.sparse() == [True, False, False]
    observer.detach()


def test_after_detach_no_hook_is_left():
    model = two_layers()
    _, observer = watched(model)
    observer.detach()
    train(model, observer)
    assert not observer.collector.any()
    assert observer.roots == ()
