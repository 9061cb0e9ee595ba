"""Training with n workers in one process, whose gradients travel in a wire format as those of n
ranks would: with the product's codec, rests kept, sums rounded once more by their owners."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from deft_horovod.base.parameter import stays_exact
from deft_horovod.base.wire_format import EXACT, WireFormat
from deft_horovod.runtime.extension import native
from scripts.places import ROOT
from scripts.studies.convergence.tasks import Batch
from scripts.studies.convergence.training import OPTIMIZERS
from scripts.studies.formats.tasks import TASKS
from scripts.studies.rates import Rates

EVALUATIONS: Final = 20
_AVERAGED: Final = 5  # the last of them
DIVERGED: Final = 10.0
_BEGINNINGS: Final = ROOT / "build" / "formats"
_BEGINNING: Final = ("adamw95", 0.001, 0)  # optimizer, rate and seed of what others go on with
_SUMMED_IN_ORDER: Final = 2  # workers up to which nobody owns a part of the sum

Gradients = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Run:
    task: str
    optimizer: str
    lr: float
    seed: int
    format: WireFormat = EXACT
    workers: int = 4


class Wire:
    """How gradients of one parameter become their average."""

    def __init__(
        self, wire_format: WireFormat, like: torch.Tensor, workers: int, feedback: bool = True
    ) -> None:
        self._format = wire_format
        self._rests = [torch.zeros_like(like).flatten() for _ in range(workers)]
        self._sum_rest = torch.zeros_like(like).flatten() if workers > _SUMMED_IN_ORDER else None
        self._feedback = feedback

    def average(self, gradients: Sequence[torch.Tensor]) -> torch.Tensor:
        total = torch.zeros_like(gradients[0]).flatten()
        for gradient, rest in zip(gradients, self._rests, strict=True):
            message = native.wire_encode(self._format, gradient.flatten(), self._kept(rest))
            native.wire_decode_add(self._format, message, total)
        mean = total / len(gradients)
        if self._sum_rest is not None:
            message = native.wire_encode(self._format, mean, self._kept(self._sum_rest))
            mean = native.wire_decode(self._format, message, mean.numel())
        return mean.view_as(gradients[0])

    def rest(self) -> torch.Tensor:
        """What has been lost of all averages so far."""
        rest = torch.stack(self._rests).mean(0)
        return rest if self._sum_rest is None else rest + self._sum_rest

    def _kept(self, rest: torch.Tensor) -> torch.Tensor | None:
        return rest if self._feedback else None


class Training:
    """One run, step by step."""

    def __init__(self, run: Run) -> None:
        torch.manual_seed(run.seed)
        self.task = TASKS[run.task]
        self.run = run
        self.model = self.task.model()
        if self.task.begins_from:
            self.model.load_state_dict(beginning(self.task.begins_from))
        self.parameters = dict(self.model.named_parameters())
        tensors: list[torch.Tensor] = list(self.parameters.values())
        self.optimizers = OPTIMIZERS[run.optimizer](tensors, run.lr)
        self.rates = Rates(self.optimizers)
        self.streams = [
            self.task.stream(torch.Generator().manual_seed(1000 * run.seed + worker))
            for worker in range(run.workers)
        ]
        self.wires = {
            name: Wire(run.format, p.detach(), run.workers)
            for name, p in self.parameters.items()
            if run.format != EXACT and not stays_exact(name, p.shape)
        }

    def train(self) -> list[float]:
        """Validation losses, equally far apart; fewer where it diverged."""
        losses: list[float] = []
        every = self.task.steps // EVALUATIONS
        for step in range(self.task.steps):
            self.rates.set_to(self.task.schedule(step / self.task.steps))
            self._step()
            if (step + 1) % every == 0:
                with torch.no_grad():
                    losses.append(self.task.loss(self.model, self.task.held_out()).item())
                if not losses[-1] < DIVERGED:
                    break
        return losses

    def _step(self) -> None:
        tensors = list(self.parameters.values())
        own = [self._gradients(stream, tensors) for stream in self.streams]
        for i, (name, p) in enumerate(self.parameters.items()):
            gradients = [of_worker[i] for of_worker in own]
            wire = self.wires.get(name)
            p.grad = torch.stack(gradients).mean(0) if wire is None else wire.average(gradients)
        if self.task.clip:
            torch.nn.utils.clip_grad_norm_(tensors, self.task.clip)
        for optimizer in self.optimizers:
            optimizer.step()

    def _gradients(self, stream: Iterator[Batch], tensors: Sequence[torch.Tensor]) -> Gradients:
        """Of one worker."""
        total: Gradients = ()
        for _ in range(self.task.passes):
            loss = self.task.loss(self.model, next(stream)) / self.task.passes
            more = torch.autograd.grad(loss, tensors)
            total = tuple(map(torch.add, total, more)) if total else more
        return total


def beginning(task: str, folder: Path = _BEGINNINGS) -> dict[str, torch.Tensor]:
    """The parameters after exact training of a task. They are kept in a file, as several processes
    begin from them."""
    path = folder / f"{task}.pt"
    if not path.exists():
        training = Training(Run(task, *_BEGINNING))
        training.train()
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        torch.save(training.model.state_dict(), draft)
        draft.replace(path)
    state: dict[str, torch.Tensor] = torch.load(path)
    return state


def final_loss(losses: Sequence[float]) -> float:
    """What is compared: the mean of the last validations, which is less noisy than the last one.
    Infinite where training diverged."""
    if len(losses) < EVALUATIONS or not all(map(math.isfinite, losses)):
        return math.inf
    return statistics.fmean(losses[-_AVERAGED:])
