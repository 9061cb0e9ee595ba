"""One training of scripts/benchmarks/target/run.py, on every rank; layers take longer.

Gradients, optimizer and data are real; layers take as long as on an accelerator (pace.py). How long
that is a rehearsal finds out, without communication and so alike for every arm: a step takes as
long as asked for. Another one after the training says whether that was still so, else the training
does not count.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from scripts.benchmarks.target.pace import Computing, Pace
from scripts.cluster import jobs
from scripts.studies.convergence import tasks as convergence_tasks
from scripts.studies.convergence.training import OPTIMIZERS, rate_share
from scripts.studies.rates import Rates

WIDTH, DEPTH = 96, 6
ROUNDS, ROUND_STEPS = 5, 12  # of a rehearsal
TOLERANCE = 0.05  # of a step without communication, after a training
EVALUATED = 128  # sequences

Row = tuple[int, float, float]  # step, seconds and validation loss


def model() -> convergence_tasks.Transformer:
    return convergence_tasks.Transformer(WIDTH, DEPTH)


class Training:
    """The same data in the same order for every arm."""

    def __init__(
        self,
        options: dict[str, Any],
        rank: int,
        computed_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self.task = convergence_tasks.TASKS["transformer"]
        torch.manual_seed(options["seed"])
        self.net = model()
        self.pace = Pace(self.net, computed_s)
        (self.inner,) = OPTIMIZERS[options["optimizer"]]([*self.net.parameters()], options["lr"])
        self.rates = Rates([self.inner])  # whose groups are also those of what wraps it
        data, held_out = self.task.data()
        self.held_out = tuple(part[:EVALUATED] for part in held_out)
        generator = torch.Generator().manual_seed(1000 * options["seed"] + rank)
        self.stream = convergence_tasks.batches(data, self.task.batch, generator)
        self.steps = options["steps"]
        self.schedule = options["schedule"]

    def step(self, number: int, optimizer: Any) -> None:
        self.rates.set_to(rate_share(number / self.steps) if self.schedule == "cosine" else 1.0)
        optimizer.zero_grad()
        self.pace.begin_step()
        self.task.loss(self.net, next(self.stream)).backward()
        optimizer.step()

    def parameters(self) -> list[torch.Tensor]:
        """As they are now."""
        return [p.detach().clone() for p in self.net.parameters()]

    @torch.no_grad()
    def loss_of(self, parameters: list[torch.Tensor]) -> float:
        """Of validation."""
        for mine, theirs in zip(self.net.parameters(), parameters, strict=True):
            mine.copy_(theirs)
        return float(self.task.loss(self.net, self.held_out))  # type: ignore[arg-type]


class Rehearsal:
    """The same steps on each rank by itself, on parameters of its own."""

    def __init__(
        self,
        options: dict[str, Any],
        barrier: Callable[[], None],
        computed_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._training = Training(options, 0, computed_s)
        self._barrier = barrier
        self.layers_s = 0.0  # of a step

    def step_s(self) -> float:
        """What a step takes while all ranks compute."""
        self._training.pace.take(self.layers_s)
        times = []
        self._barrier()
        for _ in range(ROUND_STEPS):
            began_s = time.perf_counter()
            self._training.step(0, self._training.inner)
            times.append(time.perf_counter() - began_s)
        return median(times)

    def settle(self, wanted_s: float) -> None:
        """Round by round: the rest of a step takes longer beside layers that sleep."""
        self.layers_s = wanted_s
        for _ in range(ROUNDS):
            self.layers_s = max(0.0, self.layers_s + wanted_s - self.step_s())


def wrapper(arm: dict[str, Any]) -> Callable[[Training], Any]:
    """Imports what the arm needs; what it gives wraps the optimizer."""
    if arm["stock"]:
        import horovod.torch as stock

        return partial(_wrap, stock, compression=getattr(stock.Compression, arm["compression"]))
    import deft_horovod.torch as ours

    return partial(_wrap, ours, config=arm["config"])


def _wrap(hvd: Any, training: Training, **options: Any) -> Any:
    named = training.net.named_parameters()
    return hvd.DistributedOptimizer(training.inner, named_parameters=named, **options)


def run(
    training: Training, wrap: Callable[[Training], Any], options: dict[str, Any]
) -> tuple[list[Row], Any]:
    """Its curve, and the wrapped optimizer. The clock never stops: what is to be validated is laid
    aside."""
    kept: list[tuple[int, float, list[torch.Tensor]]] = []
    began_s = time.perf_counter()
    optimizer = wrap(training)
    for number in range(1, training.steps + 1):
        training.step(number - 1, optimizer)
        if number == training.steps and not options["arm"]["stock"]:
            optimizer.flush()
        if number % options["every"] == 0 or number == training.steps:
            kept.append((number, time.perf_counter() - began_s, training.parameters()))
    training.pace.take(0.0)  # validation need not take as long as computing
    return [(number, spent_s, training.loss_of(then)) for number, spent_s, then in kept], optimizer


def train(options: dict[str, Any], rank: int, barrier: Callable[[], None]) -> dict[str, Any]:
    import horovod.torch as stock

    def longest_ms(mine_s: float) -> float:
        return 1e3 * float(stock.allgather(torch.tensor([mine_s]), name="target.step").max())

    wrap = wrapper(options["arm"])
    computing = Computing()
    computing.leave_out_updates()
    rehearsal = Rehearsal(options, barrier, computing)
    rehearsal.settle(options["compute_ms"] / 1e3)
    alone_ms = [longest_ms(rehearsal.step_s())]
    training = Training(options, rank, computing)
    training.pace.take(rehearsal.layers_s)
    barrier()
    curve, optimizer = run(training, wrap, options)
    alone_ms.append(longest_ms(rehearsal.step_s()))
    stats = {} if options["arm"]["stock"] else optimizer.stats()
    keys = "policy", "running", "formats", "late", "accuracy", "trials_us", "replans"
    said = {key: stats.get(key) for key in keys}
    return {"options": options, "alone_ms": alone_ms, "curve": curve, "stats": said}


def refusal(found: dict[str, Any]) -> str | None:
    """Why it does not count, if so."""
    after_ms, wanted_ms = found["alone_ms"][-1], found["options"]["compute_ms"]
    if abs(after_ms / wanted_ms - 1.0) <= TOLERANCE:
        return None
    return (
        f"without communication a step took {after_ms:.0f} ms after the training instead of "
        f"{wanted_ms:g} ms: wait until the machine is quiet, or give a larger --compute-ms"
    )


def main() -> int:
    options = jobs.given_options()
    if options is None:
        print("benchmarks.target.ranks: started by scripts.benchmarks.target.run", file=sys.stderr)
        return 2
    import horovod.torch as stock

    stock.init()
    torch.set_num_threads(1)
    found = train(options, stock.rank(), stock.barrier)
    refused = refusal(found)
    if refused is not None:
        print(f"benchmarks.target.ranks: {refused}", file=sys.stderr)
        return 1
    if stock.rank() == 0:
        text = json.dumps(found, default=str)
        path = Path(options["output"])
        draft = path.with_suffix(".part")
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
