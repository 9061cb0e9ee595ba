"""Reading never acts: what a script looks at, where and on which rank, changes nothing; and what it
sees is what it sees with Horovod's own optimizer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import horovod.torch as stock
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import deft_horovod.torch as hvd
from tests.parallel.scripts.training import Data, assert_equal, loss_of, mlp
from tests.parallel.scripts.twins import Twins, adam, main, ours_of, plain_sgd, sgd, stock_of

STEPS = 8
POLICY_STEPS = 24  # enough for each of the candidates of auto in its turn


class _Heads(nn.Module):
    """Two losses over disjoint parameters."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.left, self.right = nn.Linear(7, 4), nn.Linear(7, 4)

    def losses(self, batch: tuple[torch.Tensor, torch.Tensor]) -> list[torch.Tensor]:
        return [F.mse_loss(head(batch[0]), batch[1]) for head in (self.left, self.right)]


def _two_backwards(policy: str, reads: Callable[[Any], None], **arguments: Any) -> None:
    twins, data = Twins(policy, _Heads, sgd, **arguments), Data()
    for _ in range(POLICY_STEPS):
        batch = data.next()
        for model, optimizer in twins:
            optimizer.zero_grad()
            first, second = model.losses(batch)
            first.backward()
            if model is twins.model:
                reads(optimizer)
            second.backward()
            optimizer.step()
    twins.check()


def _look(optimizer: Any) -> None:
    assert optimizer.param_groups[0]["lr"] > 0.0
    assert optimizer.state is not None
    assert "SGD" in repr(optimizer)


def _look_on_rank_0(optimizer: Any) -> None:
    if stock.rank() == 0:
        _look(optimizer)


def case_between_two_backward_passes_on_one_rank(policy: str) -> None:
    _two_backwards(policy, _look_on_rank_0)


def case_between_two_backward_passes_on_one_rank_auto() -> None:
    _two_backwards("auto", _look_on_rank_0)


def case_between_two_backward_passes_with_sums(policy: str) -> None:
    _two_backwards(policy, _look, op=hvd.Sum)


def case_whether_the_optimizer_scales_is_no_end_of_a_step(policy: str) -> None:
    """Some trainers ask for it before they clip."""
    _two_backwards(policy, lambda optimizer: bool(optimizer._step_supports_amp_scaling))


def case_by_a_monitor_in_another_thread(policy: str) -> None:
    twins, data = Twins(policy), Data()
    over, seen = threading.Event(), [0]

    def watch() -> None:
        while not over.is_set():
            _look(twins.optimizer)
            len(twins.optimizer.state)
            seen[0] += 1

    monitor = threading.Thread(target=watch)
    monitor.start()
    try:
        twins.train(data, 2 * STEPS)
    finally:
        over.set()
        monitor.join()
    assert seen[0] > STEPS
    twins.check()


def case_state_after_a_step(policy: str) -> None:
    twins, data = Twins(policy, optimizer=adam), Data()
    for step in range(STEPS):
        twins.train(data, 1)
        ours, theirs = (
            [value for p in model.parameters() for value in optimizer.state[p].values()]
            for model, optimizer in twins
        )
        assert ours, f"step {step}: no state"
        assert_equal(ours, theirs, f"state after step {step}")
    twins.check()


def case_gradients_after_a_step(policy: str) -> None:
    """Also with a wire dtype of its own, where p.grad is no view of what has travelled."""
    for arguments in ({}, {"compression": hvd.Compression.fp16}):
        twins, data = Twins(policy, **arguments), Data()
        for step in range(STEPS):
            twins.train(data, 1)
            norms = []
            for model, _ in twins:
                gradients = [p.grad for p in model.parameters() if p.grad is not None]
                norms.append(torch.stack([g.norm() for g in gradients]))
            assert torch.equal(*norms), f"gradients after step {step}: {norms}"
        twins.check()


def case_a_second_step_without_backward(policy: str) -> None:
    twins, data = Twins(policy), Data()
    for step in range(STEPS):
        twins.train(data, 1)
        if step % 2:
            for _, optimizer in twins:
                optimizer.step()
    twins.check()


def case_a_second_step_without_backward_auto() -> None:
    twins, data = Twins("auto"), Data()
    for _ in range(POLICY_STEPS):
        twins.train(data, 1)
        for _, optimizer in twins:
            optimizer.step()
    twins.check()


def _tensor_rate(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=torch.tensor(0.01))


def case_a_learning_rate_that_is_a_tensor(policy: str) -> None:
    """Schedulers write into it, while gates may still hold the updates of the step before."""
    twins, data = Twins(policy, optimizer=_tensor_rate), Data()
    schedules = [torch.optim.lr_scheduler.StepLR(o, 1, gamma=0.5) for _, o in twins]
    for _ in range(STEPS):
        twins.train(data, 1)
        for schedule in schedules:
            schedule.step()
    twins.check()


def case_a_child_sees_the_last_update(policy: str) -> None:
    """Forked after step(): a worker that evaluates. Its forward waits for nothing."""
    twins, data = Twins(policy, optimizer=plain_sgd), Data()
    probe = Data(rank=9).next()[0]
    for step in range(STEPS):
        twins.train(data, 1)
        expected = twins.reference(probe).detach()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if torch.equal(twins.model(probe), expected) else 2
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(ended)
        assert code == 0, f"step {step}: the child ended with {code}"
    twins.check()


class _Bare(torch.optim.SGD):
    """From a time before `set_to_none`."""

    def zero_grad(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None


class _ToZero(torch.optim.SGD):
    """With another default."""

    def zero_grad(self, set_to_none: bool = False) -> None:
        super().zero_grad(set_to_none=set_to_none)


def case_zero_grad_gets_what_the_caller_gave(policy: str) -> None:
    if policy in ("priority", "least_stale"):
        return  # of optimizers that nobody knows these ask more: see coupling.py
    for kind, left in ((_Bare, "none"), (_ToZero, "zero")):
        model, data = mlp(), Data()
        optimizer = ours_of(model, policy, lambda parameters, k=kind: k(parameters, lr=0.05))
        for _ in range(STEPS):
            loss_of(model, data.next()).backward()
            optimizer.step()
            optimizer.zero_grad()
            gradients = [p.grad for p in model.parameters()]
            if left == "none":
                assert gradients == [None] * len(gradients)
            else:
                assert all(g is not None and not bool(g.any()) for g in gradients)


def case_zeros_are_left_where_zeros_are_asked_for(policy: str) -> None:
    twins, data = Twins(policy), Data()
    for _ in range(STEPS):
        batch = data.next()
        for model, optimizer in twins:
            loss_of(model, batch).backward()
            optimizer.step()
            if optimizer is twins.optimizer:
                optimizer.zero_grad(set_to_none=False)
            else:
                model.zero_grad(set_to_none=False)
            assert all(p.grad is not None and not bool(p.grad.any()) for p in model.parameters())
    twins.check()


def case_other_defaults_of_torch(policy: str) -> None:
    """Our own tensors are not the model's."""
    twins, data = Twins(policy), Data()
    torch.set_default_dtype(torch.bfloat16)
    torch.set_default_device("meta")
    try:
        for _ in range(STEPS):
            with torch.device("cpu"):
                torch.set_default_dtype(torch.float32)
                batch = data.next()
                torch.set_default_dtype(torch.bfloat16)
            model, optimizer = twins.model, twins.optimizer
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
            twins.stock.zero_grad()
            with torch.device("cpu"):
                loss_of(twins.reference, batch).backward()
                twins.stock.step()
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    twins.check()


class _GlobalNorm(torch.optim.SGD):
    """Clips all gradients together: one parameter's update depends on all."""

    def step(self, closure: Any = None) -> Any:
        tensors = [p for group in self.param_groups for p in group["params"]]
        nn.utils.clip_grad_norm_(tensors, 0.05)
        return super().step()


def case_an_optimizer_that_couples_parameters() -> None:
    def make(parameters: Any) -> torch.optim.Optimizer:
        return _GlobalNorm(parameters, lr=0.05, momentum=0.9)

    model, reference, data = mlp(), mlp(), Data()
    optimizer, expected = ours_of(model, "auto", make), stock_of(reference, make)
    for _ in range(POLICY_STEPS):
        batch = data.next()
        for trained, some in ((model, optimizer), (reference, expected)):
            some.zero_grad()
            loss_of(trained, batch).backward()
            some.step()
    optimizer.flush()
    assert_equal(model.parameters(), reference.parameters(), "an optimizer with a global norm")
    assert optimizer.stats()["policy"] == "bucket"


def case_it_is_an_instance_of_the_users_class(policy: str) -> None:
    optimizer, theirs = ours_of(mlp(), policy), stock_of(mlp())
    for one in (optimizer, theirs):
        assert isinstance(one, torch.optim.SGD)
        assert not isinstance(one, torch.optim.Adam)
        assert one.__class__.__name__ == "SGD"
    assert isinstance(optimizer, hvd.OptimizerType)


if __name__ == "__main__":
    main(globals())
