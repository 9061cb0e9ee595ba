"""Jobs whose gradients travel in wire formats, by plans made by hand."""

from __future__ import annotations

from typing import Any

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd
from deft_horovod.plan import Plan
from deft_horovod.runtime.reduce.in_flight import KEY
from tests.parallel.scripts.device import DEVICE
from tests.parallel.scripts.late_plans import Late, Make, plan_of, saved, sgd
from tests.parallel.scripts.training import (
    CLASSES,
    WIDTH,
    Data,
    equal_on_all_ranks,
    loss_of,
    mlp,
)


def wide(seed: int = 0) -> nn.Module:
    """With a matrix whose message is worth two stages where there are more than two ranks."""
    torch.manual_seed(seed)
    layers = nn.Sequential(
        nn.Linear(WIDTH, 640), nn.Tanh(), nn.Linear(640, 640), nn.Tanh(), nn.Linear(640, CLASSES)
    )
    return layers.to(DEVICE)


class Job:
    """A model that trains with a plan in which all values travel in one format."""

    def __init__(
        self,
        wire_format: Any,
        make: Make = sgd,
        *,
        model: nn.Module | None = None,
        plan: Plan | None = None,
        **options: Any,
    ) -> None:
        self.model, self.make, self.options = model or mlp(), make, options
        plan = plan or plan_of(self.model, [Late()] * 6, wire_format=wire_format)
        self.file = saved(plan)
        self.optimizer = self.wrap(self.model)
        self.data = Data()

    def wrap(self, model: nn.Module) -> Any:
        config = {"plan_file": self.file, "correction": "none"}
        optimizer = self.make(model)
        return hvd.DistributedOptimizer(
            optimizer, model.named_parameters(), config=config, **self.options
        )

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss_of(self.model, self.data.next()).backward()
        self.optimizer.step()


class Adder(torch.optim.SGD):
    """Counts what it applies, in float64."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        assert closure is None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                applied = self.state[p].setdefault("applied", torch.zeros_like(p).double())
                applied += p.grad
                p.detach().add_(p.grad, alpha=-group["lr"])


def adder(model: nn.Module) -> torch.optim.Optimizer:
    return Adder(model.parameters(), lr=0.01)


class Ledger(Job):
    """What was produced on all ranks against what was applied."""

    def __init__(self, wire_format: Any, **options: Any) -> None:
        super().__init__(wire_format, adder, **options)
        self.parameters = list(self.model.parameters())
        self._produced = [torch.zeros_like(p, dtype=torch.float64) for p in self.parameters]
        self._sizes = [torch.zeros_like(p, dtype=torch.float64) for p in self.parameters]

    def step(self) -> None:
        self.optimizer.zero_grad()
        for _ in range(self.optimizer.backward_passes_per_step):
            loss_of(self.model, self.data.next()).backward()
        self.end_step()

    def end_step(self) -> None:
        for produced, sizes, p in zip(self._produced, self._sizes, self.parameters, strict=True):
            produced.add_(p.grad)
            sizes.add_(p.grad.abs())
        self.optimizer.step()

    def follow(self, rank: int) -> None:
        """Goes on from what this rank has applied."""
        self.optimizer.flush()
        stock.broadcast_parameters(self.model.state_dict(), rank)
        for i, p in enumerate(self.parameters):
            applied = self.optimizer.state[p]["applied"]
            applied.copy_(stock.broadcast(applied, rank, name=f"ledger.applied.{i}"))

    def check(self, what: str) -> None:
        """Once nothing is in flight all of it has arrived, but for roundings to float32."""
        self.optimizer.flush()
        assert equal_on_all_ranks(self.parameters), f"{what}: the replicas differ"
        for i, p in enumerate(self.parameters):
            wanted = stock.allreduce(self._produced[i], name=f"ledger.{i}")
            error = (self.optimizer.state[p]["applied"] - wanted).abs().max()
            most = 2.0**-23 * stock.allreduce(self._sizes[i], name=f"ledger.{i}").max()
            assert error < most, f"{what}: parameter {i} is off by {error}, of at most {most}"

    def left(self) -> float:
        """Of this rank."""
        rests = self.optimizer.state_dict()[KEY]["rests"]
        every = [*rests["values"].values(), *rests["sums"].values()]
        return float(sum(one.abs().sum() for one in every))
