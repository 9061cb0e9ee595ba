"""Training with n workers in one process, whose gradients travel as an arm says; every so often it
measures what they are wrong by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Final

import torch

from deft_horovod.base.parameter import stays_exact
from deft_horovod.runtime.reduce.merging import merging
from scripts.studies.convergence.lateness import Gradients, Lateness
from scripts.studies.convergence.tasks import Batch
from scripts.studies.convergence.training import OPTIMIZERS, Statistics, first_late
from scripts.studies.formats.training import DIVERGED, EVALUATIONS, Wire
from scripts.studies.judge.arms import ARMS, EXACT_ARM
from scripts.studies.judge.probe import error_of
from scripts.studies.judge.tasks import JUDGED
from scripts.studies.rates import Rates

PROBE_EVERY: Final = 25  # steps


@dataclass(frozen=True)
class Run:
    task: str
    optimizer: str
    lr: float
    arm: str
    seed: int
    workers: int = 4


@dataclass
class Outcome:
    losses: list[float] = field(default_factory=list)  # of validation, equally far apart
    errors: list[dict[str, float]] = field(default_factory=list)  # of each probe
    # Of exact training: what data parallelism lets every rank know, by tenth of the training.
    statistics: dict[str, list[float]] = field(default_factory=dict)
    late_share: float = 0.0  # of all bytes


class Training:
    """One run, step by step."""

    def __init__(self, run: Run, device: str = "cpu") -> None:
        torch.manual_seed(run.seed)
        self._run, self._device = run, device
        self._judged, self._arm = JUDGED[run.task], ARMS[run.arm]
        self._task = self._judged.task
        self._model = self._task.model().to(device)
        named: dict[str, torch.Tensor] = dict(self._model.named_parameters())
        self._tensors = list(named.values())
        self._optimizers = OPTIMIZERS[run.optimizer](self._tensors, run.lr)
        self._rates = Rates(self._optimizers)
        self._streams = [
            self._task.stream(torch.Generator().manual_seed(1000 * run.seed + worker))
            for worker in range(run.workers)
        ]
        prefixes = self._judged.late(self._arm.late.late)
        self._late = [p for name, p in named.items() if name.startswith(prefixes)]
        late = set(self._late)
        self._wires = {
            p: Wire(self._arm.format, p.detach(), run.workers, self._arm.feedback)
            for name, p in named.items()
            if self._arm.rounds
            and not stays_exact(name, p.shape)
            and not (self._arm.apart and p in late)
        }
        mean = merging(self._optimizers[0], "auto", self._arm.late.correction).mean
        begin = first_late(self._arm.late, self._task.steps, self._task.schedule)
        self._lateness = Lateness(self._arm.late, self._late, self._optimizers, mean, begin)

    def train(self) -> Outcome:
        late_bytes = sum(p.numel() for p in self._late)
        outcome = Outcome(late_share=late_bytes / sum(p.numel() for p in self._tensors))
        steps, statistics = self._task.steps, Statistics(self._task.steps)
        for step in range(steps):
            self._rates.set_to(self._task.schedule(step / steps))
            batches = [self._to_device(next(stream)) for stream in self._streams]
            own = [self._predicted(worker, batch) for worker, batch in enumerate(batches)]
            average = {p: self._average(p, own) for p in self._tensors}
            if self._run.arm == EXACT_ARM:
                statistics.add(step, own[0], average, self._tensors)
            elif (step + 1) % PROBE_EVERY == 0:
                outcome.errors.append(self._probe(average, own, batches))
            self._lateness.boundary(step, own, average)
            if (step + 1) % (steps // EVALUATIONS) == 0:
                outcome.losses.append(self._validate())
                if not outcome.losses[-1] < DIVERGED:
                    break
        outcome.statistics = statistics.means()
        return outcome

    def _to_device(self, batch: Batch) -> Batch:
        inputs, targets = batch
        return inputs.to(self._device), targets.to(self._device)

    def _predicted(self, worker: int, batch: Batch) -> Gradients:
        with self._lateness.predicted(worker):
            return self._gradient(batch)

    def _gradient(self, batch: Batch) -> Gradients:
        with self._precision():
            loss = self._task.loss(self._model, batch)
        found = torch.autograd.grad(loss, self._tensors)
        return dict(zip(self._tensors, found, strict=True))

    @contextmanager
    def _precision(self) -> Iterator[None]:
        kind = torch.device(self._device).type
        with torch.autocast(kind, torch.bfloat16, enabled=self._judged.autocast):
            yield

    def _average(self, p: torch.Tensor, own: list[Gradients]) -> torch.Tensor:
        gradients = [of_worker[p] for of_worker in own]
        if self._arm.reversed:
            gradients.reverse()
        wire = self._wires.get(p)
        return torch.stack(gradients).mean(0) if wire is None else wire.average(gradients)

    def _probe(
        self, average: Gradients, own: list[Gradients], batches: list[Batch]
    ) -> dict[str, float]:
        """One more backward of each worker, where something is late."""
        true = own
        if self._late:
            with self._lateness.true():
                true = [self._gradient(batch) for batch in batches]
        rests = {p: wire.rest() for p, wire in self._wires.items()}
        return asdict(error_of(average, true, rests))

    @torch.no_grad()
    def _validate(self) -> float:
        with self._precision():
            batch = self._to_device(self._task.held_out())
            return self._task.loss(self._model, batch).item()
