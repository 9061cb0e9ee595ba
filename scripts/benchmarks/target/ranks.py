"""One training of scripts/benchmarks/target/run.py, on every rank; layers take longer.

Gradients, optimizer and data are real; before each layer's part of forward and backward the rank
sleeps, so that a step takes as long as asked for and the processor stays free for communication, as
it is beside an accelerator.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from scripts.cluster import jobs
from scripts.studies.convergence import tasks as convergence_tasks
from scripts.studies.convergence.training import OPTIMIZERS, rate_share
from scripts.studies.rates import Rates

WIDTH, DEPTH = 96, 6
ALONE_STEPS = 8  # to find out how long the processor takes for a step
EVALUATED = 128  # sequences
_FORWARD = 1.0 / 3.0  # of a step


def model() -> convergence_tasks.Transformer:
    return convergence_tasks.Transformer(WIDTH, DEPTH)


class Pace:
    """Sleeps before each block's part of a stage, once it is told for how long."""

    def __init__(self, net: convergence_tasks.Transformer) -> None:
        self._blocks = [*net.blocks, net.head]
        self._step_s = 0.0
        for block in self._blocks:
            block.register_forward_pre_hook(lambda *_: self._sleep(_FORWARD))
            block.register_forward_hook(self._watch_backward)

    def slow_down(self, by_s: float) -> None:
        """So much longer a step takes from now on."""
        self._step_s = max(0.0, by_s)

    def _sleep(self, share: float) -> None:
        time.sleep(self._step_s * share / len(self._blocks))

    def _watch_backward(self, _: nn.Module, __: object, output: torch.Tensor) -> None:
        if output.requires_grad:
            output.register_hook(lambda _: self._sleep(1.0 - _FORWARD))


class Training:
    """The same data in the same order for every arm."""

    def __init__(self, options: dict[str, Any], rank: int) -> None:
        self.task = convergence_tasks.TASKS["transformer"]
        torch.manual_seed(options["seed"])
        self.net = model()
        self.pace = Pace(self.net)
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
        self.task.loss(self.net, next(self.stream)).backward()
        optimizer.step()

    @torch.no_grad()
    def evaluate(self) -> float:
        return float(self.task.loss(self.net, self.held_out))  # type: ignore[arg-type]


def alone_s(options: dict[str, Any]) -> float:
    """What a step takes without sleeping and without communication."""
    training = Training(options, 0)
    times = []
    for number in range(ALONE_STEPS):
        began_s = time.perf_counter()
        training.step(number, training.inner)
        times.append(time.perf_counter() - began_s)
    return sorted(times)[len(times) // 2]


def wrap(training: Training, arm: dict[str, Any]) -> Any:
    named = training.net.named_parameters()
    if arm["stock"]:
        import horovod.torch as stock

        compression = getattr(stock.Compression, arm["compression"])
        return stock.DistributedOptimizer(
            training.inner, named_parameters=named, compression=compression
        )
    import deft_horovod.torch as hvd

    return hvd.DistributedOptimizer(training.inner, named_parameters=named, config=arm["config"])


def train(options: dict[str, Any], rank: int, barrier: Callable[[], None]) -> dict[str, Any]:
    import horovod.torch as stock

    busy = stock.allgather(torch.tensor([alone_s(options)]), name="target.alone").max().item()
    training = Training(options, rank)
    training.pace.slow_down(options["compute_ms"] / 1e3 - busy)
    optimizer = wrap(training, options["arm"])
    curve: list[tuple[int, float, float]] = []
    spent_s, began_s = 0.0, time.perf_counter()
    for number in range(training.steps):
        training.step(number, optimizer)
        if (number + 1) % options["every"] == 0 or number + 1 == training.steps:
            if number + 1 == training.steps and not options["arm"]["stock"]:
                optimizer.flush()
            spent_s += time.perf_counter() - began_s
            curve.append((number + 1, spent_s, training.evaluate()))
            barrier()
            began_s = time.perf_counter()
    stats = {} if options["arm"]["stock"] else optimizer.stats()
    keys = "policy", "running", "formats", "late", "accuracy", "trials_us"
    said = {key: stats.get(key) for key in keys}
    return {"options": options, "busy_ms": 1e3 * busy, "curve": curve, "stats": said}


def main() -> int:
    options = jobs.given_options()
    if options is None:
        print("benchmarks.target.ranks: started by scripts.benchmarks.target.run", file=sys.stderr)
        return 2
    import horovod.torch as stock

    stock.init()
    torch.set_num_threads(1)
    found = train(options, stock.rank(), stock.barrier)
    if stock.rank() == 0:
        text = json.dumps(found, default=str)
        path = Path(options["output"])
        draft = path.with_suffix(".part")
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
