"""The same model twice or three times: with our optimizer, with Horovod's, averaged by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import cases_in, chosen, run_cases
from tests.parallel.scripts.training import (
    Data,
    assert_equal_models,
    equal_on_all_ranks,
    loss_of,
    mlp,
)

# Several messages even for the smallest model, and large parameters are cut.
SIZES = {
    "bucket_bytes": 2048,
    "first_bucket_bytes": 1024,
    "partition_bytes": 1024,
    "credit_bytes": 2500,
}
_numbers = itertools.count()

MakeModel = Callable[[], nn.Module]
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


def sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.01)


def plain_sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05)


def adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.01)


def ours_of(
    model: nn.Module,
    policy: str,
    optimizer: MakeOptimizer = sgd,
    config: Mapping[str, Any] = MappingProxyType({}),
    **arguments: Any,
) -> hvd.OptimizerType:
    """Our optimizer over all parameters of a model."""
    inner = optimizer(model.parameters())
    made = hvd.DistributedOptimizer(
        inner, model.named_parameters(), policy=policy, config={**SIZES, **config}, **arguments
    )
    assert isinstance(made, hvd.OptimizerType)
    return made


def stock_of(model: nn.Module, optimizer: MakeOptimizer = sgd, **arguments: Any) -> Any:
    """Horovod's optimizer over all parameters of a model, under names of its own."""
    number = next(_numbers)
    named = [(f"{number}.{name}", p) for name, p in model.named_parameters()]
    return stock.DistributedOptimizer(optimizer(model.parameters()), named, **arguments)


class Twins:
    """One model with ours, a copy with Horovod's optimizer."""

    def __init__(
        self,
        policy: str,
        make: MakeModel = mlp,
        optimizer: MakeOptimizer = sgd,
        config: Mapping[str, Any] = MappingProxyType({}),
        **arguments: Any,
    ) -> None:
        self.model, self.reference = make(), make()
        self.optimizer = ours_of(self.model, policy, optimizer, config, **arguments)
        self.stock = stock_of(self.reference, optimizer, **arguments)

    def __iter__(self) -> Iterator[tuple[nn.Module, Any]]:
        yield self.model, self.optimizer
        yield self.reference, self.stock

    def train(self, data: Data, steps: int) -> None:
        """Plain steps with both, on the same batches."""
        for _ in range(steps):
            batch = data.next()
            for model, optimizer in self:
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()

    def check(self, what: str = "parameters") -> None:
        """Equal bit for bit, here and on all ranks."""
        self.optimizer.flush()
        assert_equal_models(self.model, self.reference, what)
        assert equal_on_all_ranks(self.model.parameters()), f"{what}: replicas differ"


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """By hand; who has no gradient here has none anywhere."""
    for i, p in enumerate(parameters):
        if p.grad is not None:
            p.grad = stock.allreduce(p.grad, name=f"manual.{i}")


def main(namespace: dict[str, Any]) -> None:
    """Runs the cases of a program."""
    hvd.init()
    torch.set_num_threads(1)
    wait_patiently()
    run_cases(chosen(cases_in(namespace)))
