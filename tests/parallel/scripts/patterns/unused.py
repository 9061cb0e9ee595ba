"""Gradients that do not come: on one rank, on all, for some steps, or because of a freeze."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import horovod.torch as stock
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from tests.parallel.scripts.training import Data, assert_equal_models, equal_on_all_ranks, loss_of
from tests.parallel.scripts.twins import Twins, average_gradients, main, ours_of, plain_sgd, sgd

STEPS = 8


class _Branches(nn.Module):
    """A stem, and two branches that can be left out."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.stem = nn.Linear(7, 20)
        self.left = nn.Linear(20, 4)
        self.right = nn.Linear(20, 4)

    def forward(self, x: torch.Tensor, left: bool, right: bool) -> torch.Tensor:
        hidden = torch.tanh(self.stem(x))
        result = hidden.mean() + torch.zeros(x.shape[0], 4)
        if left:
            result = result + self.left(hidden)
        if right:
            result = result + self.right(hidden)
        return result


Use = Callable[[int], tuple[bool, bool]]


def _step(model: nn.Module, optimizer: Any, batch: Any, use: tuple[bool, bool]) -> None:
    optimizer.zero_grad()
    F.mse_loss(model(batch[0], *use), batch[1]).backward()
    optimizer.step()


def _same_as_horovod(policy: str, use: Use) -> None:
    # Momentum and decay move a parameter without a gradient, as Horovod makes it one of zeros.
    twins, data = Twins(policy, _Branches, sgd), Data()
    for step in range(STEPS):
        batch = data.next()
        for model, optimizer in twins:
            _step(model, optimizer, batch, use(step))
        twins.check(f"step {step}") if policy != "priority" else None
    twins.check()


def case_used_on_one_rank_only(policy: str) -> None:
    _same_as_horovod(policy, lambda _: (True, stock.rank() == 0))


def case_used_on_alternating_ranks(policy: str) -> None:
    _same_as_horovod(policy, lambda step: (True, step % 2 == stock.rank()))


def case_each_rank_uses_another_branch(policy: str) -> None:
    _same_as_horovod(policy, lambda _: (stock.rank() == 0, stock.rank() == 1))


def case_used_then_unused_then_used(policy: str) -> None:
    _same_as_horovod(policy, lambda step: (True, not 3 <= step < 6))


def case_first_used_late(policy: str) -> None:
    _same_as_horovod(policy, lambda step: (step >= 5, True))


def case_unused_on_all_ranks(policy: str) -> None:
    _same_as_horovod(policy, lambda step: (True, step < 3 or step == STEPS - 1))


def case_unused_under_auto() -> None:
    """Whatever candidate runs, the rule is the same: 30 steps are several turns of each."""
    twins, data = Twins("auto", _Branches, sgd), Data()
    for step in range(30):
        batch = data.next()
        for model, optimizer in twins:
            _step(model, optimizer, batch, (True, step == 0))
    twins.check()


def case_a_step_without_backward(policy: str) -> None:
    twins, data = Twins(policy, _Branches, sgd), Data()
    for step in range(STEPS):
        batch = data.next()
        for model, optimizer in twins:
            optimizer.zero_grad()
            if step not in (0, 4, 5):
                F.mse_loss(model(batch[0], True, True), batch[1]).backward()
            optimizer.step()
    twins.check()


def _freezing(policy: str, frozen: Callable[[int], Sequence[str]]) -> None:
    """Ours against averages by hand; Horovod's own ignores what is unfrozen after its start. Before
    the first step (-1) the optimizer is made."""
    model, reference = _Branches(), _Branches()

    def freeze(module: nn.Module, step: int) -> None:
        for name, parameter in module.named_parameters():
            parameter.requires_grad_(name.split(".")[0] not in frozen(step))

    freeze(model, -1)
    optimizer, expected = ours_of(model, policy), sgd(reference.parameters())
    data = Data()
    for step in range(14):
        optimizer.flush()
        freeze(model, step)
        freeze(reference, step)
        batch = data.next()
        _step(model, optimizer, batch, (True, True))
        expected.zero_grad()
        F.mse_loss(reference(batch[0], True, True), batch[1]).backward()
        average_gradients(reference.parameters())
        expected.step()
        optimizer.flush()
        assert_equal_models(model, reference, f"step {step}")
        assert equal_on_all_ranks(model.parameters()), f"step {step}"


def case_unfrozen_during_training(policy: str) -> None:
    _freezing(policy, lambda step: ["stem"] if step < 5 else [])


def case_frozen_during_training(policy: str) -> None:
    _freezing(policy, lambda step: ["left"] if step >= 5 else [])


def case_frozen_before_the_first_step(policy: str) -> None:
    _freezing(policy, lambda step: ["left"] if 0 <= step < 6 else [])


def case_frozen_and_unfrozen_in_turn(policy: str) -> None:
    _freezing(policy, lambda step: [[], ["left"], ["right", "stem"]][max(step, 0) // 4 % 3])


def case_everything_but_one_layer_frozen_at_start(policy: str) -> None:
    _freezing(policy, lambda step: ["stem", "left"] if step < 6 else ["right"])


def case_unfrozen_with_a_gradient_on_one_rank(policy: str) -> None:
    """In that step no plan has it, and only one rank would send it."""
    twins, data = Twins(policy, _Branches, plain_sgd), Data()
    right = [list(model.right.parameters()) for model, _ in twins]
    for step in range(10):
        for parameter in right[0]:
            parameter.requires_grad_(step >= 5)
        batch = data.next()
        for model, optimizer in twins:
            _step(model, optimizer, batch, (True, step >= 5 and stock.rank() == 1))
    twins.check()


def case_nothing_trains(policy: str) -> None:
    """Of one of two optimizers, for a while."""
    model, reference = _Branches(), _Branches()
    optimizer, expected = ours_of(model, policy), sgd(reference.parameters())
    data = Data()
    for step in range(24):
        trains = step >= 16
        for parameter in (*model.parameters(), *reference.parameters()):
            parameter.requires_grad_(trains)
        batch = data.next()
        optimizer.zero_grad()
        expected.zero_grad()
        if trains:
            F.mse_loss(model(batch[0], True, True), batch[1]).backward()
            F.mse_loss(reference(batch[0], True, True), batch[1]).backward()
            average_gradients(reference.parameters())
        optimizer.step()
        expected.step()
    optimizer.flush()
    assert_equal_models(model, reference)
    assert equal_on_all_ranks(model.parameters())


class _Lookup(nn.Module):
    """An embedding with sparse gradients under a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.embedding = nn.Embedding(13, 6, sparse=True)
        self.output = nn.Linear(6, 13)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.output(torch.tanh(self.embedding(tokens)))


def case_sparse_gradients(policy: str) -> None:
    for as_dense in (False, True):
        twins = Twins(policy, _Lookup, plain_sgd, sparse_as_dense=as_dense)
        data = Data("tied")
        for step in range(STEPS):
            batch = data.next()
            for model, optimizer in twins:
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
            twins.optimizer.flush()
            assert_equal_models(twins.model, twins.reference, f"as_dense={as_dense}, {step}")
        twins.check()


if __name__ == "__main__":
    main(globals())
