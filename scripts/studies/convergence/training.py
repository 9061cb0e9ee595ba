"""Training with n workers in one process, exactly as n ranks would under a plan.

One optimizer stands for all replicas, as these are equal at every boundary. A worker's gradient is
taken at the parameters that it would see: the true ones, or those that its correction predicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import torch

from deft_horovod.runtime.reduce.merging import merging
from scripts.studies.convergence.acco import NAME as ACCO
from scripts.studies.convergence.acco import TrialStep
from scripts.studies.convergence.lateness import Arm, Gradients, Lateness
from scripts.studies.convergence.tasks import TASKS, Batch, Task, batches
from scripts.studies.rates import Rates

_WARM: Final = 0.05  # of all steps, in which the learning rate rises
_LOW: Final = 0.1  # of the learning rate, to which it falls
_EVALUATIONS: Final = 10
_WINDOWS: Final = 10
_DIVERGED: Final = 10.0  # a loss beyond which training has failed

Parameters = list[torch.Tensor]
Optimizers = list[torch.optim.Optimizer]


def _muon(parameters: Parameters, lr: float) -> Optimizers:
    """It is for matrices; all others are AdamW's, as is usual, with a tenth of the rate."""
    matrices = [p for p in parameters if p.dim() == 2]
    rest = [p for p in parameters if p.dim() != 2]
    return [torch.optim.Muon(matrices, lr=lr), torch.optim.AdamW(rest, lr=lr / 10)]


OPTIMIZERS: Final[Mapping[str, Callable[[Parameters, float], Optimizers]]] = {
    "sgd": lambda p, lr: [torch.optim.SGD(p, lr=lr, momentum=0.9)],
    "nesterov": lambda p, lr: [torch.optim.SGD(p, lr=lr, momentum=0.9, nesterov=True)],
    "adam": lambda p, lr: [torch.optim.Adam(p, lr=lr)],
    "adamw": lambda p, lr: [torch.optim.AdamW(p, lr=lr, weight_decay=0.01)],
    "adamw95": lambda p, lr: [torch.optim.AdamW(p, lr=lr, betas=(0.9, 0.95), weight_decay=0.1)],
    "muon": _muon,
    "adafactor": lambda p, lr: [torch.optim.Adafactor(p, lr=lr)],
}


@dataclass(frozen=True)
class Run:
    task: str
    optimizer: str
    lr: float
    arm: Arm
    seed: int
    workers: int = 4
    batch: int = 0  # of each worker; 0: the task's
    stretch: float = 1.0  # of the task's steps


@dataclass
class Outcome:
    run: Run
    losses: list[tuple[int, float]] = field(default_factory=list)  # of validation, by step
    accuracy: float = 0.0
    # Of the late parameters, or of all where none is late; by tenth of the training.
    statistics: dict[str, list[float]] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        return self.losses[-1][1] if self.losses else math.inf

    def to_data(self) -> dict[str, Any]:
        return {**asdict(self), "loss": self.loss}


class Training:
    """One run, step by step."""

    def __init__(self, run: Run) -> None:
        torch.manual_seed(run.seed)
        self.run = run
        self.task: Task = TASKS[run.task]
        self.steps = round(self.task.steps * run.stretch)
        self.model = self.task.model()
        self.parameters = dict(self.model.named_parameters())
        self.optimizers = OPTIMIZERS[run.optimizer](list(self.parameters.values()), run.lr)
        self.rates = Rates(self.optimizers)
        data, self.held_out = self.task.data()
        self.streams = [
            batches(
                data,
                run.batch or self.task.batch,
                torch.Generator().manual_seed(1000 * run.seed + worker),
            )
            for worker in range(run.workers)
        ]
        late = [
            p for name, p in self.parameters.items() if name.startswith(_late(self.task, run.arm))
        ]
        self.late = first_bytes(late, run.arm.share)
        mean = merging(self.optimizers[0], "auto", run.arm.correction).mean
        in_time = run.arm.correction == ACCO
        begin = first_late(run.arm, self.steps)
        self.lateness = Lateness(
            run.arm, [] if in_time else self.late, self.optimizers, mean, begin
        )
        self.trial = TrialStep(self.late, self.optimizers) if in_time else None
        self.halves: list[Gradients] = []  # of this step, one of each worker

    def train(self) -> Outcome:
        outcome, statistics = Outcome(self.run), Statistics(self.steps)
        for step in range(self.steps):
            self.rates.set_to(rate_share(step / self.steps))
            own = [self._gradients(worker) for worker in range(self.run.workers)]
            average = {p: torch.stack([g[p] for g in own]).mean(0) for p in own[0]}
            statistics.add(step, own[0], average, self.late or list(average))
            if self.trial is not None and step + 1 >= self.run.arm.warmup:
                self.trial.foresee(self.halves)
            self.halves.clear()
            self.lateness.boundary(step, own, average)
            if (step + 1) % max(1, self.steps // _EVALUATIONS) == 0 or step + 1 == self.steps:
                loss, outcome.accuracy = self._evaluate()
                outcome.losses.append((step + 1, loss))
                if not loss < _DIVERGED:
                    break
        outcome.statistics = statistics.means()
        return outcome

    def _gradients(self, worker: int) -> Gradients:
        batch: Batch = next(self.streams[worker])
        if self.trial is not None:
            return self._in_halves(self.trial, batch)
        with self.lateness.predicted(worker):
            return self._gradient(batch)

    def _gradient(self, batch: Batch) -> Gradients:
        loss = self.task.loss(self.model, batch)
        tensors = list(self.parameters.values())
        return dict(zip(tensors, torch.autograd.grad(loss, tensors), strict=True))

    def _in_halves(self, trial: TrialStep, batch: Batch) -> Gradients:
        inputs, targets = batch
        middle = len(inputs) // 2
        with trial.taken():
            first = self._gradient((inputs[:middle], targets[:middle]))
        second = self._gradient((inputs[middle:], targets[middle:]))
        self.halves.append(first)
        return {p: (first[p] + second[p]) / 2 for p in first}

    @torch.no_grad()
    def _evaluate(self) -> tuple[float, float]:
        loss = self.task.loss(self.model, self.held_out).item()
        found = self.model(self.held_out[0]).argmax(-1)
        accuracy = (found == self.held_out[1]).float().mean().item()
        return (loss if math.isfinite(loss) else math.inf), accuracy


def _late(task: Task, arm: Arm) -> tuple[str, ...]:
    """Prefixes of the names of late parameters."""
    return ("",) if arm.late < 0 else task.first[: arm.late]


def rate_share(done: float) -> float:
    """Of the learning rate: it rises, then falls as a cosine does."""
    if done < _WARM:
        return (done + _WARM / 10) / (_WARM * 1.1)
    return _LOW + (1.0 - _LOW) * 0.5 * (1.0 + math.cos(math.pi * (done - _WARM) / (1.0 - _WARM)))


def first_late(arm: Arm, steps: int, share: Callable[[float], float] = rate_share) -> int:
    """The first step of the training whose update may be late. `share`: of the learning rate."""
    fallen = (s for s in range(round(_WARM * steps), steps) if share(s / steps) <= arm.below)
    return max(arm.warmup, next(fallen, steps)) if arm.below < 1.0 else arm.warmup


def first_bytes(tensors: Sequence[torch.Tensor], share: float) -> list[torch.Tensor]:
    """In this order, those that still fit into that share of the bytes."""
    left, found = share * sum(p.numel() for p in tensors), []
    for p in tensors:
        if p.numel() <= left:
            found.append(p)
            left -= p.numel()
    return found


class Statistics:
    """What data parallelism lets every rank know, as means over parts of the training."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._sums: list[dict[str, float]] = [{} for _ in range(_WINDOWS)]
        self._counts = [0] * _WINDOWS
        self._before: list[torch.Tensor] = []  # the two averages before, the latest one last

    def add(
        self, step: int, own: Gradients, average: Gradients, tensors: Sequence[torch.Tensor]
    ) -> None:
        window = step * _WINDOWS // self._steps
        mean = torch.cat([average[p].flatten() for p in tensors])
        mine = torch.cat([own[p].flatten() for p in tensors])
        if len(self._before) == 2:
            self._counts[window] += 1
            for name, value in (
                ("own_square", mine @ mine),
                ("average_square", mean @ mean),
                ("cosine", _cosine(mean, self._before[1])),
                ("cosine_of_two", _cosine(mean, self._before[0])),
                ("change_square", (mean - self._before[1]).square().sum()),
            ):
                sums = self._sums[window]
                sums[name] = sums.get(name, 0.0) + value.item()
        self._before = [*self._before[-1:], mean]

    def means(self) -> dict[str, list[float]]:
        names = dict.fromkeys(name for sums in self._sums for name in sums)
        return {
            name: [
                sums[name] / count
                for sums, count in zip(self._sums, self._counts, strict=True)
                if count
            ]
            for name in names
        }


def _cosine(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    cosine: torch.Tensor = one @ other / (one.norm() * other.norm() + 1e-30)
    return cosine
