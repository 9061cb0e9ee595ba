"""The wrapper as torch's users see it: schedulers, closures, hooks, copies, checkpoints."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from typing import Any

import torch
from training import Data, assert_equal_models, equal_on_all_ranks, loss_of, mlp
from twins import Twins, adam, average_gradients, main, ours_of, sgd

from deft_horovod.errors import NotSupportedError

LIKE_TORCH = ("step", "zero_grad", "state_dict", "load_state_dict", "add_param_group")


def _train(model: torch.nn.Module, optimizer: Any, data: Data, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, data.next()).backward()
        optimizer.step()


def case_signatures_are_those_of_torch() -> None:
    made = ours_of(mlp(), "bucket")
    for name in LIKE_TORCH:
        ours = inspect.signature(getattr(type(made), name)).parameters
        theirs = inspect.signature(getattr(torch.optim.Optimizer, name)).parameters
        assert list(ours) == list(theirs), name
        for parameter, expected in zip(ours.values(), theirs.values(), strict=True):
            assert parameter.default == expected.default, name
            assert parameter.kind == expected.kind, name


def case_schedulers_without_a_warning(policy: str) -> None:
    twins, data = Twins(policy), Data()
    schedulers = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for _, o in twins]
    for _ in range(6):
        batch = data.next()
        for (model, optimizer), scheduler in zip(twins, schedulers, strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("error" if optimizer is twins.optimizer else "ignore")
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
                scheduler.step()
    twins.check()  # gated updates use the rate of their own step


def case_closures(policy: str) -> None:
    model, reference = mlp(), mlp()
    optimizer, expected = ours_of(model, policy), sgd(reference.parameters())
    data = Data()
    for _ in range(4):
        batch = data.next()

        def closure(batch: Any = batch) -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        expected.zero_grad()
        expected_loss = loss_of(reference, batch)
        expected_loss.backward()
        average_gradients(reference.parameters())
        expected.step()
        assert torch.equal(loss, expected_loss)
    optimizer.flush()
    assert_equal_models(model, reference, "after closures")


def case_lbfgs_keeps_replicas_equal(policy: str) -> None:
    def lbfgs(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.LBFGS(parameters, max_iter=3)

    model = mlp()
    if policy == "priority":
        try:
            ours_of(model, policy, lbfgs)
        except NotSupportedError as error:
            assert "LBFGS" in str(error)  # noqa: PT017  # both outcomes are checked
            return
        raise AssertionError("priority took LBFGS")
    optimizer = ours_of(model, policy, lbfgs)
    before = [p.detach().clone() for p in model.parameters()]
    data = Data()
    for _ in range(3):
        batch = data.next()

        def closure(batch: Any = batch) -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            return loss

        optimizer.step(closure)
    assert equal_on_all_ranks(model.parameters())
    assert not torch.equal(before[0], next(model.parameters()))


def case_step_hooks_run_once_with_averages(policy: str) -> None:
    model = mlp()
    inner = sgd(model.parameters())
    seen: list[str] = []
    inner.register_step_post_hook(lambda *_: seen.append("inner"))
    optimizer = ours_of(model, policy, lambda _: inner)
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    _train(model, optimizer, Data(), 2)
    optimizer.flush()
    assert seen == ["before", "inner", "after"] * 2


def case_zero_grad_between_forward_and_backward(policy: str) -> None:
    twins, data = Twins(policy), Data()
    for step in range(6):
        batch = data.next()
        for model, optimizer in twins:
            loss = loss_of(model, batch)
            if optimizer is twins.optimizer:
                optimizer.zero_grad(set_to_none=step % 2 == 0)
            else:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                model(batch[0])  # an evaluation
    twins.check()


def case_zero_grad_of_the_model(policy: str) -> None:
    twins, data = Twins(policy), Data()
    for _ in range(4):
        batch = data.next()
        for model, optimizer in twins:
            model.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
    twins.check()


def case_parameters_saved_right_after_step(policy: str) -> None:
    twins, data = Twins(policy), Data()
    for _ in range(4):
        twins.train(data, 1)
        saved = twins.model.state_dict()
        for name, value in twins.reference.state_dict().items():
            assert torch.equal(saved[name], value), name


def case_resume_equals_continue(policy: str) -> None:
    model = mlp()
    optimizer = ours_of(model, policy, adam)
    _train(model, optimizer, Data(), 4)
    saved = copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    _train(model, optimizer, Data(), 4)
    resumed = mlp()
    with torch.no_grad():
        for parameter in resumed.parameters():
            parameter.zero_()
    again = ours_of(resumed, policy, adam)
    resumed.load_state_dict(saved["model"])
    again.load_state_dict(saved["optimizer"])
    _train(resumed, again, Data(), 4)
    optimizer.flush()
    again.flush()
    assert_equal_models(model, resumed, "resumed and continued")


def case_copies_train_on_their_own(policy: str) -> None:
    model = mlp()
    optimizer = ours_of(model, policy, adam)
    _train(model, optimizer, Data(), 3)
    copied, copied_optimizer = copy.deepcopy((model, optimizer))
    assert isinstance(pickle.loads(pickle.dumps(optimizer)), type(optimizer))  # noqa: S301
    _train(model, optimizer, Data(), 3)
    _train(copied, copied_optimizer, Data(), 3)
    optimizer.flush()
    copied_optimizer.flush()
    assert_equal_models(model, copied, "original and copy")


if __name__ == "__main__":
    main(globals())
