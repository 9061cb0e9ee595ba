"""Plans by hand in which updates come late, and what plain torch does with the same plan."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd
from deft_horovod.base.parameter import Parameter
from deft_horovod.base.wire_format import EXACT, WireFormat
from deft_horovod.plan import Bucket, Generation, Link, Plan, Task
from deft_horovod.solver.messages.layout import lay_out
from tests.parallel.scripts.device import DEVICE
from tests.parallel.scripts.training import Data, loss_of, mlp

Make = Callable[[nn.Module], torch.optim.Optimizer]


@dataclass(frozen=True)
class Late:
    """How late one parameter's updates come: `merged` steps travel together, the first such run
    ends at step `phase` of the cycle; gated ones are applied in the next forward."""

    delay: int = 0
    merged: int = 1
    gated: bool = False
    link: int = 0
    forward: bool = False  # the message waits for the next forward


def generations(late: Late, bucket: int, period: int) -> list[Generation]:
    return [
        Generation(
            bucket=bucket,
            first_step=first,
            last_step=first + late.merged - 1,
            apply_step=first + late.merged - 1 + late.delay,
            gated=late.gated,
        )
        for first in range(0, period, late.merged)
    ]


def plan_of(
    model: nn.Module,
    timings: Sequence[Late],
    links: Sequence[str] = ("horovod",),
    wire_format: WireFormat = EXACT,
) -> Plan:
    """One bucket for each parameter; the last parameter's gradient is ready first."""
    named = list(model.named_parameters())
    parameters = [Parameter(n, p.numel(), "float32", "float32", DEVICE.type) for n, p in named]
    layout = lay_out(parameters, list(reversed(range(len(parameters)))))
    period = max(late.merged for late in timings)
    buckets, made, tasks = [], [], []
    for span in layout.spans[0]:
        late = timings[span.parameter]
        for generation in generations(late, len(buckets), period):
            forward = late.forward and (late.delay > 0 or late.gated)
            tasks.append(
                Task(
                    generation=len(made),
                    link=late.link,
                    step=generation.last_step + forward,
                    stage="forward" if forward else "backward",
                )
            )
            made.append(generation)
        place = Bucket(arena=0, begin=span.begin, end=span.end, format=wire_format)
        buckets.append(place)
    tasks.sort(key=lambda task: (task.step, task.stage != "forward", task.generation))
    most = max(1 + late.delay // late.merged + (late.delay > 0) for late in timings)
    return Plan(
        policy="by hand",
        period=period,
        buffers=most,
        links=tuple(Link(name=name, credit_messages=3) for name in links),
        arenas=layout.arenas,
        slots=layout.slots,
        buckets=tuple(buckets),
        generations=tuple(made),
        tasks=tuple(tasks),
    )


def saved(plan: Plan) -> str:
    """The plan in a file of rank 0, which alone reads it; all ranks know its path."""
    path = ""
    if stock.rank() == 0:
        path = str(Path(tempfile.mkdtemp(prefix="deft-late-")) / "plan.json")
        plan.save(path)
    shared: str = stock.broadcast_object(path, name="late.plan")
    return shared


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)


def adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.01)


class LateJob:
    """A model that trains with such a plan."""

    def __init__(self, timings: Sequence[Late], make: Make, correction: str) -> None:
        self.model, self.timings, self.make, self.correction = mlp(), timings, make, correction
        plan = plan_of(self.model, timings)
        self.file = saved(plan)
        self.optimizer = self.wrap(self.model)
        self.data = Data()

    def wrap(self, model: nn.Module) -> Any:
        config = {"plan_file": self.file, "correction": self.correction}
        return hvd.DistributedOptimizer(self.make(model), model.named_parameters(), config=config)

    def resumed(self) -> tuple[nn.Module, Any]:
        """Another model and optimizer that have loaded what these have now."""
        model = mlp(seed=5)
        optimizer = self.wrap(model)
        model.load_state_dict(copy.deepcopy(self.model.state_dict()))
        optimizer.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))
        return model, optimizer

    def train(self, steps: int, optimizer: Any = None, model: nn.Module | None = None) -> None:
        optimizer, model = optimizer or self.optimizer, model or self.model
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(model, self.data.next()).backward()
            optimizer.step()


class Reference:
    """All ranks in one process: gradients at the same weights, averaged, applied when due."""

    def __init__(
        self, model: nn.Module, optimizer: Any, timings: Sequence[Late], ranks: int
    ) -> None:
        self.model, self.optimizer, self.timings = model, optimizer, timings
        self.data = [Data(rank=rank) for rank in range(ranks)]
        self.sums: dict[int, list[torch.Tensor]] = {}  # of each parameter and rank, not yet sent
        self.due: dict[tuple[int, int], torch.Tensor] = {}  # (parameter, step of its update)
        self.step = 0
        self.mean = not isinstance(optimizer, torch.optim.SGD)

    def train(self, steps: int) -> None:
        parameters = list(self.model.parameters())
        for _ in range(steps):
            for data_of_rank, rank in zip(self.data, range(len(self.data)), strict=True):
                self.optimizer.zero_grad()
                loss_of(self.model, data_of_rank.next()).backward()
                for i, p in enumerate(parameters):
                    sums = self.sums.setdefault(i, [])
                    if len(sums) <= rank:
                        sums.append(p.grad.clone())
                    else:
                        sums[rank] += p.grad
            for i, (p, late) in enumerate(zip(parameters, self.timings, strict=True)):
                if (self.step + 1) % late.merged == 0:
                    average = sum(self.sums.pop(i)) / len(self.data)
                    self.due[i, self.step + late.delay] = self._divided(average, late.merged)
                p.grad = self.due.pop((i, self.step), None)
            self.optimizer.step()
            self.step += 1

    def _divided(self, average: torch.Tensor, steps: int) -> torch.Tensor:
        return average / steps if self.mean and steps > 1 else average

    def flush(self) -> None:
        """What was sent and not applied, in order; then what was not even complete."""
        parameters = list(self.model.parameters())
        for i, sums in list(self.sums.items()):
            late = self.timings[i]
            held = self.step % late.merged
            full = self.step - held + late.merged - 1 + late.delay
            self.due[i, full] = self._divided(sum(sums) / len(self.data), held)
        self.sums.clear()
        for step in sorted({step for _, step in self.due}):
            for i, p in enumerate(parameters):
                p.grad = self.due.pop((i, step), None)
            self.optimizer.step()
        self.step = 0
