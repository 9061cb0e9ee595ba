"""Optimizers of a script on one rank, in every way in which they are used."""

import gc

import pytest
import torch
from torch import nn

from deft_horovod.job.optimizer_watch import OptimizerWatch
from deft_horovod.job.profile_request import ProfileRequest
from deft_horovod.runtime.job_request import Answered

WARMUP, STEPS = 3, 4
NEEDED = WARMUP + STEPS


@pytest.fixture
def taken():
    return []


@pytest.fixture
def request_(taken):
    request = ProfileRequest(
        WARMUP,
        STEPS,
        lambda asked_optimizer, profile: taken.append((asked_optimizer, profile)) or "",
    )
    watch = OptimizerWatch(request)
    yield request
    watch.close()


def network(width=6):
    return nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 2))


def loss_of(model):
    return model(torch.ones(4, 3)).square().sum()


def until_taken(step, limit=60):
    """How many steps it took."""
    for number in range(1, limit + 1):
        try:
            step()
        except Answered as end:
            assert end.code == 0
            return number
    return None


def sane(profile, steps=STEPS):
    assert profile.steps == steps
    assert profile.size == 1
    assert profile.links == ()
    assert profile.forward_us > 0
    assert profile.backward_us > 0
    assert profile.compute_us <= profile.step_us * 1.001
    return profile


def test_a_plain_script(request_, taken):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()

    assert until_taken(step) == NEEDED
    ((asked_optimizer, profile),) = taken
    sane(profile)
    assert (asked_optimizer.kind, asked_optimizer.tensors) == ("SGD", 4)
    assert [t.name for t in profile.tensors] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [(m.name, m.type) for m in profile.modules] == [("0", "Linear"), ("2", "Linear")]
    assert set(profile.ready_order[:2]) == {2, 3}
    assert all(us is not None for us in profile.first_use_us)


def test_training_is_not_changed():
    torch.manual_seed(0)
    watched, other = network(), network()
    other.load_state_dict(watched.state_dict())
    optimizer = torch.optim.Adam(watched.parameters())

    def step():
        optimizer.zero_grad()
        loss_of(watched).backward()
        optimizer.step()

    alike = torch.optim.Adam(other.parameters())
    for _ in range(NEEDED - 1):  # the last update is not made
        alike.zero_grad()
        loss_of(other).backward()
        alike.step()
    request = ProfileRequest(WARMUP, STEPS, lambda *_: "")
    watch = OptimizerWatch(request)
    assert until_taken(step) == NEEDED
    watch.close()
    for mine, theirs in zip(watched.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_accumulated_gradients_are_one_step(request_, taken):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        for _ in range(3):
            loss_of(model).backward()
        optimizer.step()

    assert until_taken(step) == NEEDED
    sane(taken[0][1])


def test_a_short_window_is_no_error(request_, taken):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    passes = iter([2, 2, 2, 1, 2, 3, 2, 2, 2, 2, 2])

    def step():
        optimizer.zero_grad()
        for _ in range(next(passes)):
            loss_of(model).backward()
        optimizer.step()

    assert until_taken(step) == NEEDED
    assert sane(taken[0][1], steps=2)  # of the 4 steps one is shorter and one is longer


@pytest.mark.parametrize("to_none", [True, False])
def test_steps_that_a_loss_scaler_throws_away(request_, taken, to_none):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    calls = iter(range(100))

    def step():
        number = next(calls)
        optimizer.zero_grad(set_to_none=to_none)
        loss_of(model).backward()
        if number not in (0, 4, 6):
            optimizer.step()

    assert until_taken(step) == NEEDED + 3
    assert 1 <= taken[0][1].steps <= STEPS


def test_gradients_that_are_asked_for_are_no_pass_of_the_step(request_, taken):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        x = torch.ones(3, requires_grad=True)
        torch.autograd.grad(model(x).sum(), x)
        loss_of(model).backward()
        torch.autograd.grad(model(x).sum(), x)
        optimizer.step()

    assert until_taken(step) == NEEDED
    sane(taken[0][1])


def test_two_losses_for_two_parts(request_, taken):
    parts = nn.ModuleList([network(), network()])
    optimizer = torch.optim.SGD(parts.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        for part in parts:
            loss_of(part).backward()
        optimizer.step()

    assert until_taken(step) == NEEDED
    profile = sane(taken[0][1])
    assert len({t.name for t in profile.tensors}) == 8
    assert profile.tensors[0].name == "Sequential1.0.weight"
    assert len(profile.modules) == 4


def test_a_closure_is_a_step_for_each_evaluation(request_, taken):
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    assert until_taken(lambda: optimizer.step(closure=closure)) < NEEDED
    assert taken[0][0].kind == "LBFGS"
    assert taken[0][1].steps == STEPS


def test_the_optimizer_with_most_bytes_is_the_one(request_, taken):
    small, large = network(2), network(50)
    optimizers = [
        torch.optim.SGD(small.parameters(), lr=0.01),
        torch.optim.Adam(large.parameters(), lr=0.01),
    ]

    def step():
        for model, optimizer in zip((small, large), optimizers, strict=True):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()

    assert until_taken(step) == NEEDED
    assert taken[0][0].kind == "Adam"
    assert [s.kind for s in request_.asked_optimizers] == ["SGD", "Adam"]
    assert sane(taken[0][1]).tensors[0].shape == (50, 3)


def test_a_compiled_model(request_, taken):
    model = network()
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        loss_of(compiled).backward()
        optimizer.step()

    assert until_taken(step) == NEEDED
    profile = sane(taken[0][1])
    assert [m.type for m in profile.modules] == ["OptimizedModule"]
    assert profile.tensors[0].name == "0.weight"


def test_whoever_catches_the_end_meets_it_again(request_, taken):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()

    assert until_taken(step) == NEEDED
    assert until_taken(step) == 1
    assert len(taken) == 1


def test_an_optimizer_is_not_kept_alive(request_):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    del optimizer
    gc.collect()
    assert request_.asked_optimizers[0].steps == 4
    second = torch.optim.SGD(model.parameters(), lr=0.01)
    second.zero_grad()
    loss_of(model).backward()  # nothing refuses it
    second.step()


def test_nothing_is_left_behind(taken):
    request = ProfileRequest(WARMUP, STEPS, lambda *_: "")
    watch = OptimizerWatch(request)
    watch.close()
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of(model).backward()
    optimizer.step()
    assert request.asked_optimizers == []
