"""Training loops: several optimizers, accumulation, schedulers, closures, hooks, checkpoints."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import horovod.torch as stock
import pytest
import torch
from torch import nn
from torch.optim import optimizer as torch_optimizer

import deft_horovod.torch as hvd
from deft_horovod.errors import NotSupportedError
from tests.parallel.scripts.training import (
    Data,
    assert_equal,
    assert_equal_models,
    equal_on_all_ranks,
    loss_of,
    mlp,
)
from tests.parallel.scripts.twins import (
    SIZES,
    Twins,
    adam,
    average_gradients,
    main,
    ours_of,
    plain_sgd,
    sgd,
    stock_of,
)

STEPS = 8


class _Gan:
    """A generator and a discriminator, each with its own optimizer."""

    def __init__(self, wrap: Callable[[nn.Module], Any]) -> None:
        torch.manual_seed(1)
        self.generator = nn.Sequential(nn.Linear(7, 20), nn.Tanh(), nn.Linear(20, 7))
        self.discriminator = nn.Sequential(nn.Linear(7, 30), nn.Tanh(), nn.Linear(30, 1))
        self.of_generator = wrap(self.generator)
        self.of_discriminator = wrap(self.discriminator)

    def step(self, noise: torch.Tensor, real: torch.Tensor, freeze: bool) -> None:
        self.of_discriminator.zero_grad()  # also what the generator's loss has left here
        fake = self.generator(noise)
        loss = self.discriminator(fake.detach()).mean() - self.discriminator(real).mean()
        loss.backward()
        self.of_discriminator.step()
        self.of_generator.zero_grad()
        self.discriminator.requires_grad_(not freeze)
        (-self.discriminator(fake).mean()).backward()
        self.discriminator.requires_grad_(True)
        self.of_generator.step()

    def tensors(self) -> list[torch.Tensor]:
        return [*self.generator.parameters(), *self.discriminator.parameters()]


def _compare_gans(policy: str, freeze: bool) -> None:
    # Horovod's own refuses zero_grad() while gradients travel, so there the discriminator is
    # frozen where its gradients are not wanted: the parameters are the same.
    mine = _Gan(lambda model: ours_of(model, policy, adam))
    theirs = _Gan(lambda model: stock_of(model, adam))
    data = Data()
    for _ in range(STEPS):
        noise, real = data.next()[0], data.next()[0]
        mine.step(noise, real, freeze)
        theirs.step(noise, real, freeze=True)
    mine.of_generator.flush()
    mine.of_discriminator.flush()
    assert_equal(mine.tensors(), theirs.tensors(), "GAN")
    assert equal_on_all_ranks(mine.tensors())


def case_gan_with_unwanted_gradients(policy: str) -> None:
    _compare_gans(policy, freeze=False)


def case_gan_that_freezes_the_discriminator(policy: str) -> None:
    _compare_gans(policy, freeze=True)


def case_two_optimizers_of_one_model(policy: str) -> None:
    twins = [mlp(), mlp()]
    names = [[(f"{i}.{n}", p) for n, p in m.named_parameters()] for i, m in enumerate(twins)]
    optimizers: list[list[Any]] = []
    for model, named in zip(twins, names, strict=True):
        parameters = list(model.parameters())
        inner = [
            torch.optim.SGD(parameters[:3], lr=0.05, momentum=0.9),
            torch.optim.Adam(parameters[3:], lr=0.01),
        ]
        if not optimizers:
            wrap: Any = hvd.DistributedOptimizer
            options: dict[str, Any] = {"policy": policy, "config": SIZES}
        else:
            wrap, options = stock.DistributedOptimizer, {}
        optimizers.append(
            [wrap(o, n, **options) for o, n in zip(inner, (named[:3], named[3:]), strict=True)]
        )
    data = Data()
    for _ in range(STEPS):
        batch = data.next()
        for model, pair in zip(twins, optimizers, strict=True):
            for optimizer in pair:
                optimizer.zero_grad()
            loss_of(model, batch).backward()
            for optimizer in pair:
                optimizer.step()
    for optimizer in optimizers[0]:
        optimizer.flush()
    assert_equal_models(*twins)


def case_short_last_window(policy: str) -> None:
    """Seven batches in windows of three: the last step of an epoch sees one."""
    twins, data = Twins(policy, backward_passes_per_step=3), Data()
    for _ in range(2):
        batches = [data.next() for _ in range(7)]
        for window in (batches[:3], batches[3:6], batches[6:]):
            for model, optimizer in twins:
                optimizer.zero_grad()
                for batch in window:
                    loss_of(model, batch).backward()
                optimizer.step()
    twins.check()


def case_changing_the_number_of_passes(policy: str) -> None:
    twins, data = Twins(policy, backward_passes_per_step=1), Data()
    for passes in (1, 3, 3, 2, 1, 1):
        batches = [data.next() for _ in range(passes)]
        for model, optimizer in twins:
            optimizer.zero_grad()
            optimizer.set_backward_passes_per_step(passes)
            for batch in batches:
                loss_of(model, batch).backward()
            optimizer.step()
    assert twins.optimizer.backward_passes_per_step == 1
    twins.check()


def case_ways_to_clear_gradients(policy: str) -> None:
    """By the optimizer or the model, to None or to zero, before or after the step, or never."""
    twins, data = Twins(policy, optimizer=plain_sgd), Data()
    for way in ("none", "none", "none", "zero", "zero", "model", "model zero", "never", "zero") * 2:
        batch = data.next()
        for model, optimizer in twins:
            if way == "model" or (way == "none" and optimizer is twins.stock):
                model.zero_grad()
            elif way == "none":
                optimizer.zero_grad(set_to_none=True)
            elif way == "model zero" or (way == "zero" and optimizer is twins.stock):
                model.zero_grad(set_to_none=False)
            elif way == "zero":
                optimizer.zero_grad(set_to_none=False)
            loss_of(model, batch).backward()
            optimizer.step()
        assert_equal(
            [p.grad for p in twins.model.parameters()],
            [p.grad for p in twins.reference.parameters()],
            f"gradients after '{way}'",
        )
    twins.check()


def case_schedulers_do_not_warn(policy: str) -> None:
    twins, data = Twins(policy), Data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedules = [
            torch.optim.lr_scheduler.StepLR(twins.optimizer, 2, gamma=0.5),
            torch.optim.lr_scheduler.LambdaLR(twins.optimizer, lambda epoch: 1 / (1 + epoch)),
        ]
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(twins.optimizer, patience=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [
            torch.optim.lr_scheduler.StepLR(twins.stock, 2, gamma=0.5),
            torch.optim.lr_scheduler.LambdaLR(twins.stock, lambda epoch: 1 / (1 + epoch)),
        ]
        expected_plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(twins.stock, patience=1)
    for _ in range(STEPS):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            twins.train(data, 1)
            for schedule in schedules:
                schedule.step()
            plateau.step(1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for schedule in expected:
                schedule.step()
            expected_plateau.step(1.0)
        rates = [[g["lr"] for g in o.param_groups] for _, o in twins]
        assert rates[0] == rates[1]
    assert rates[0] < [0.05]
    twins.check()


def _train_with_closure(optimizer: Any, model: nn.Module, average: bool) -> list[float]:
    batch = Data().next()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        if average:
            average_gradients(model.parameters())
        # LBFGS decides by the loss, which has to be the same everywhere.
        return stock.allreduce(loss.detach(), name="closure.loss")

    losses = [float(optimizer.step(closure)) for _ in range(5)]
    assert losses[-1] < losses[0]
    return losses


def case_closure(policy: str) -> None:
    """Horovod's own reduces before the closure runs, so the reference is averaged by hand."""
    model, reference = mlp(), mlp()
    losses = _train_with_closure(ours_of(model, policy), model, average=False)
    expected = _train_with_closure(sgd(reference.parameters()), reference, average=True)
    assert losses == expected
    assert_equal_models(model, reference)


def case_accumulation_that_starts_over(policy: str) -> None:
    """A bad batch in the middle of a window: its gradients are cleared, the count begins anew.
    Horovod's own would go on counting, so the reference is averaged by hand."""
    model, reference, data = mlp(), mlp(), Data()
    twins = [(model, ours_of(model, policy, backward_passes_per_step=2))]
    twins.append((reference, sgd(reference.parameters())))
    for _ in range(STEPS):
        batches = [data.next() for _ in range(3)]
        for trained, optimizer in twins:
            optimizer.zero_grad()
            for number, batch in enumerate(batches):
                loss_of(trained, batch).backward()
                if number == 0:
                    optimizer.zero_grad()
            if trained is reference:
                average_gradients(reference.parameters())
            optimizer.step()
    twins[0][1].flush()
    assert_equal_models(model, reference)


def case_lbfgs(policy: str) -> None:
    def lbfgs(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.LBFGS(parameters, max_iter=4, line_search_fn="strong_wolfe")

    model, reference = mlp(), mlp()
    if policy in ("priority", "least_stale"):  # LBFGS cannot be updated in parts
        with pytest.raises(NotSupportedError, match="LBFGS"):
            _train_with_closure(ours_of(model, policy, lbfgs), model, average=False)
        return
    losses = _train_with_closure(ours_of(model, policy, lbfgs), model, average=False)
    expected = _train_with_closure(lbfgs(reference.parameters()), reference, average=True)
    assert losses == expected
    assert_equal_models(model, reference)


def case_step_hooks_run_once(policy: str) -> None:
    model, data = mlp(), Data()
    optimizer = ours_of(model, policy)
    calls: list[str] = []

    def hook(name: str) -> Callable[..., None]:
        return lambda *_: calls.append(name)

    optimizer.register_step_pre_hook(hook("pre"))
    optimizer.register_step_post_hook(hook("post"))
    optimizer.inner.register_step_pre_hook(hook("inner pre"))
    handle = torch_optimizer.register_optimizer_step_pre_hook(hook("global pre"))
    try:
        for step in range(6):
            calls.clear()
            optimizer.zero_grad()
            loss_of(model, data.next()).backward()
            optimizer.step()
            expected = ["global pre", "inner pre", "post", "pre"]
            assert sorted(calls) == expected, f"step {step}: {calls}"
            assert calls[-1] == "post"
            optimizer.flush()
            assert sorted(calls) == expected, f"after flush() in step {step}: {calls}"
    finally:
        handle.remove()


def case_broadcast_of_parameters_and_state(policy: str) -> None:
    """Each rank starts elsewhere; only rank 0 has a state of its optimizer."""
    models = [mlp(seed=stock.rank()), mlp(seed=stock.rank())]
    inner = [adam(model.parameters()) for model in models]
    data = Data()
    if stock.rank() == 0:
        for model, optimizer in zip(models, inner, strict=True):
            loss_of(model, Data().next()).backward()
            optimizer.step()
            optimizer.zero_grad()
    named = [[(f"{i}.{n}", p) for n, p in m.named_parameters()] for i, m in enumerate(models)]
    optimizers = [
        hvd.DistributedOptimizer(inner[0], named[0], policy=policy, config=SIZES),
        stock.DistributedOptimizer(inner[1], named[1]),
    ]
    if stock.rank() == 0:  # Horovod's makes a new optimizer, without the state of the one given
        optimizers[1].load_state_dict(inner[1].state_dict())
    hvd.broadcast_parameters(models[0].state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizers[0], root_rank=0)
    stock.broadcast_parameters(models[1].state_dict(), root_rank=0)
    stock.broadcast_optimizer_state(optimizers[1], root_rank=0)
    assert equal_on_all_ranks(models[0].parameters())
    for step in range(STEPS):
        batch = data.next()
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
        if policy not in ("priority", "least_stale"):
            assert equal_on_all_ranks(models[0].parameters()), f"step {step}"
    hvd.broadcast_optimizer_state(optimizers[0], root_rank=0)  # in the middle of training
    assert_equal_models(*models)
    step_counts = {int(s["step"]) for s in optimizers[0].state_dict()["state"].values()}
    assert step_counts == {STEPS + 1}


def _checkpoint(model: nn.Module, optimizer: Any, model_first: bool) -> bytes:
    makers = {"model": model.state_dict, "optimizer": optimizer.state_dict}
    order = ("model", "optimizer") if model_first else ("optimizer", "model")
    file = io.BytesIO()
    torch.save({name: makers[name]() for name in order}, file)
    return file.getvalue()


def case_resume_equals_continue(policy: str) -> None:
    for model_first in (True, False):
        twins, data = Twins(policy, optimizer=adam), Data()
        twins.train(data, 6)
        saved = _checkpoint(twins.model, twins.optimizer, model_first)
        batches = [data.next() for _ in range(6)]

        def go_on(model: nn.Module, optimizer: Any, batches: Any = batches) -> None:
            for batch in batches:
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()

        go_on(twins.model, twins.optimizer)
        go_on(twins.reference, twins.stock)
        resumed = mlp(seed=99)
        optimizer = ours_of(resumed, policy, adam)
        loaded = torch.load(io.BytesIO(saved))
        resumed.load_state_dict(loaded["model"])
        optimizer.load_state_dict(loaded["optimizer"])
        go_on(resumed, optimizer)
        optimizer.flush()
        twins.check()
        assert_equal_models(resumed, twins.model, "resumed")
        states = [o.state_dict()["state"] for o in (optimizer, twins.optimizer)]
        for key, state in states[0].items():
            assert_equal(state.values(), states[1][key].values(), f"state of parameter {key}")


def case_loading_discards_gradients_on_their_way(policy: str) -> None:
    """A step is abandoned after backward(): the loaded state must not meet its gradients."""
    twins, data = Twins(policy), Data()
    twins.train(data, 5)
    saved = [(m.state_dict(), o.state_dict()) for m, o in twins]
    saved = [torch.load(io.BytesIO(_bytes_of(pair))) for pair in saved]
    loss_of(twins.model, data.next()).backward()
    for (model, optimizer), (weights, state) in zip(twins, saved, strict=True):
        model.load_state_dict(weights)
        optimizer.load_state_dict(state)
        optimizer.zero_grad()
    twins.train(data, 5)
    twins.check()


def _bytes_of(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


if __name__ == "__main__":
    main(globals())
