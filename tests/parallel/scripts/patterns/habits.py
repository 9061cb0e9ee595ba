"""What scripts do around a step: models, losses, metrics, workers, changed gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import horovod.torch as stock
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset

import deft_horovod.torch as hvd
from tests.parallel.scripts.training import Data, loss_of
from tests.parallel.scripts.twins import Twins, adam, main, sgd

STEPS = 8

Batch = tuple[torch.Tensor, torch.Tensor]
Loss = Callable[[nn.Module, Batch], torch.Tensor]


def _train(
    twins: Twins, loss: Loss = loss_of, before_step: Callable[..., None] | None = None
) -> None:
    data = Data()
    for step in range(STEPS):
        batch = data.next()
        for model, optimizer in twins:
            optimizer.zero_grad()
            loss(model, batch).backward()
            if before_step is not None:
                before_step(step, model, optimizer)
            optimizer.step()
    twins.check()


def _seeded(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    def made() -> nn.Module:
        torch.manual_seed(11)
        return make()

    return made


class _Block(nn.Module):
    """Has no length; a compiled one raises where it is asked for it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inside = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.inside(x))


class _EmptyShell(_Block):
    """False, if it is asked for its truth."""

    def __len__(self) -> int:
        return 0


def _compiled(module: nn.Module) -> Any:
    return torch.compile(module, backend="aot_eager")


def _shells() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(7, 20), _compiled(_Block(20)), _EmptyShell(20), nn.Linear(20, 4))


def case_modules_whose_truth_cannot_be_asked() -> None:
    for policy, steps in (("least_stale", STEPS), ("auto", 3 * STEPS)):
        twins, data = Twins(policy, _shells), Data()
        whole = [_compiled(_Whole(model)) for model, _ in twins]
        for _ in range(steps):
            batch = data.next()
            for model, (_, optimizer) in zip(whole, twins, strict=True):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
        twins.check(policy)


class _Whole(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)


def case_a_gradient_penalty(policy: str) -> None:
    """Gradients of gradients: a backward pass inside of the loss that leaves nothing in p.grad."""

    def penalty(model: nn.Module, batch: Batch) -> torch.Tensor:
        inputs = batch[0].clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(model(inputs).sum(), inputs, create_graph=True)
        return loss_of(model, batch) + slope.square().mean()

    _train(Twins(policy), penalty)


def case_two_losses_over_one_graph(policy: str) -> None:
    """One forward, two backward passes that add up."""
    twins, data = Twins(policy, backward_passes_per_step=2), Data()
    for _ in range(STEPS):
        inputs, targets = data.next()
        for model, optimizer in twins:
            optimizer.zero_grad()
            outputs = model(inputs)
            F.mse_loss(outputs, targets).backward(retain_graph=True)
            outputs.abs().mean().backward()
            optimizer.step()
    twins.check()


def case_weights_that_are_computed(policy: str) -> None:
    """Parametrizations compute a weight from others before each use."""

    def make() -> nn.Module:
        first = nn.utils.parametrizations.weight_norm(nn.Linear(7, 20))
        second = nn.utils.parametrizations.orthogonal(nn.Linear(20, 20))
        return nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), nn.Linear(20, 4))

    _train(Twins(policy, _seeded(make)))


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(1, 9, num_layers=2, batch_first=True)
        self.output = nn.Linear(9, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.recurrent(x.unsqueeze(-1))[0][:, -1])


def case_a_recurrent_network(policy: str) -> None:
    """Its weights are lists that a module keeps beside its parameters."""
    _train(Twins(policy, _seeded(_Recurrent), adam))


def case_batch_normalisation_and_dropout(policy: str) -> None:
    def make() -> nn.Module:
        return nn.Sequential(
            nn.Linear(7, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Dropout(0.2), nn.Linear(20, 4)
        )

    def loss(model: nn.Module, batch: Batch) -> torch.Tensor:
        torch.manual_seed(3)  # both models drop the same
        return loss_of(model, batch)

    _train(Twins(policy, _seeded(make)), loss)


def case_attention_over_tied_weights(policy: str) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.Linear(7, 16)
            self.attend = nn.MultiheadAttention(16, 2, batch_first=True)
            self.again = self.attend  # the same layer twice
            self.down = nn.Linear(16, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.up(x).unsqueeze(1)
            x = self.attend(x, x, x)[0]
            return self.down(self.again(x, x, x)[0].squeeze(1))

    _train(Twins(policy, _seeded(Model)))


def case_metrics_between_backward_and_step(policy: str) -> None:
    """Horovod's own calls of the script pass, also while gradients are on their way."""

    def metric(step: int, model: nn.Module, optimizer: Any) -> None:
        mine = torch.tensor([float(step + stock.rank())])
        name = f"habits.metric.{type(optimizer) is hvd.OptimizerType}"
        assert float(hvd.allreduce(mine, name=name)) == step + 0.5
        assert hvd.broadcast_object(step, name=name + ".object") == step
        assert next(model.parameters()).requires_grad

    _train(Twins(policy), before_step=metric)


def case_a_rate_is_set_between_backward_and_step(policy: str) -> None:
    def warm_up(step: int, _: nn.Module, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * (step + 1)

    _train(Twins(policy), before_step=warm_up)


def case_groups_with_options_of_their_own(policy: str) -> None:
    def make(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        decayed, plain = [], []
        for parameter in parameters:
            (decayed if parameter.dim() > 1 else plain).append(parameter)
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "lr": 0.5}]
        return torch.optim.SGD(groups, lr=0.05, momentum=0.9)

    _train(Twins(policy, optimizer=make))


def case_gradients_changed_after_synchronize(policy: str) -> None:
    """Centralised gradients; also one that is replaced, and one that is left out."""

    def change(step: int, model: nn.Module, optimizer: Any) -> None:
        optimizer.synchronize()
        parameters = list(model.parameters())
        for parameter in parameters:
            assert parameter.grad is not None
            parameter.grad.sub_(parameter.grad.mean())
        parameters[0].grad = parameters[0].grad * 2
        if step % 2:
            parameters[-1].grad = None

    twins, data = Twins(policy), Data()
    for step in range(STEPS):
        batch = data.next()
        for model, optimizer in twins:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            change(step, model, optimizer)
            with optimizer.skip_synchronize():
                optimizer.step()
    twins.check()


def case_weights_changed_between_backward_and_step(policy: str) -> None:
    """Decay by hand, before the update."""

    def decay(_: int, model: nn.Module, __: Any) -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.99)

    _train(Twins(policy), before_step=decay)


def case_hooks_on_modules(policy: str) -> None:
    seen: dict[nn.Module, int] = {}

    def watched(twins: Twins) -> None:
        for model, _ in twins:
            layer = model[0]  # type: ignore[index]
            seen[model] = 0

            def count(*_: Any, of: nn.Module = model) -> None:
                seen[of] += 1

            layer.register_full_backward_hook(count)
            layer.register_forward_hook(count)

    twins = Twins(policy)
    watched(twins)
    _train(twins)
    assert seen[twins.model] == seen[twins.reference] == 2 * STEPS


def case_workers_that_load_data(policy: str) -> None:
    """Forked by the loader at the beginning of each epoch, right after a step."""
    torch.manual_seed(100 + stock.rank())
    dataset = TensorDataset(torch.randn(12, 7), torch.randn(12, 4))
    twins = Twins(policy)
    for _ in range(2):
        for batch in DataLoader(dataset, batch_size=4, num_workers=1):
            for model, optimizer in twins:
                optimizer.zero_grad()
                loss_of(model, tuple(batch)).backward()
                optimizer.step()
    twins.check()


def case_a_batch_that_is_skipped_on_all_ranks(policy: str) -> None:
    """Its loss is not finite, so its gradients are cleared; Horovod's own forbids that."""
    twins, data = Twins(policy, optimizer=sgd), Data()
    for step in range(2 * STEPS):
        batch = data.next()
        if step % 3 == 2:
            loss_of(twins.model, batch).backward()
            twins.optimizer.zero_grad()
            continue
        for model, optimizer in twins:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
    twins.check()


if __name__ == "__main__":
    main(globals())
