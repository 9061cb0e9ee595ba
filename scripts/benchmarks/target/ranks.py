"""One training of scripts/benchmarks/target/run.py, on every rank; layers take longer.

Gradients, optimizer and data are real; before each layer's part of forward and backward the rank
sleeps, so that a step takes as long as asked for and the processor is free for communication in
between, as it is beside an accelerator.
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
from torch import nn

from scripts.cluster import jobs
from scripts.studies.convergence import tasks as convergence_tasks
from scripts.studies.convergence.training import OPTIMIZERS, rate_share
from scripts.studies.rates import Rates

WIDTH, DEPTH = 96, 6
MOST_BUSY = 0.9  # share of a step; else it may take longer than asked for
EVALUATED = 128  # sequences
_FORWARD = 1.0 / 3.0  # of a step


def model() -> convergence_tasks.Transformer:
    return convergence_tasks.Transformer(WIDTH, DEPTH)


class Pace:
    """Lets forward, backward and optimizer take as long together as asked for, whatever the
    processor needs.

    Before each part of forward and backward it sleeps for what the processor did not need for it in
    the step before. Only time of the processor counts, so whoever waits makes a step longer.
    """

    def __init__(self, net: convergence_tasks.Transformer, inner: torch.optim.Optimizer) -> None:
        blocks = [*net.blocks, net.head]
        shares = _FORWARD / len(blocks), (1.0 - _FORWARD) / len(blocks)
        self._shares = [share for share in shares for _ in blocks]
        self._used_s = [0.0] * len(self._shares)  # by the processor, in the latest step
        self._optimizer_s = 0.0  # the same, outside of all parts
        self._step_s = self._left_s = 0.0  # a step, and that without the optimizer
        self._missing_s = 0.0  # what parts took longer than their share
        self._running: int | None = None
        self._began_s = 0.0
        for place, block in enumerate(blocks):
            block.register_forward_pre_hook(partial(self._forward, place))
            block.register_forward_hook(partial(self._watch, len(self._shares) - 1 - place))
        inner.register_step_pre_hook(lambda *_: self._update(-time.thread_time()))
        inner.register_step_post_hook(lambda *_: self._update(time.thread_time()))

    @property
    def busy_s(self) -> float:
        """What the processor needed for the latest step."""
        return sum(self._used_s) + self._optimizer_s

    def hold(self, step_s: float) -> None:
        """So long a step takes from now on."""
        self._step_s = step_s

    def end(self) -> None:
        """The part that runs is over."""
        if self._running is not None:
            self._used_s[self._running] = time.thread_time() - self._began_s
            self._running = None

    def _forward(self, part: int, *_: object) -> None:
        if torch.is_grad_enabled():  # else nothing but the loss is asked for
            self._begin(part)

    def _watch(self, part: int, _: nn.Module, __: object, output: torch.Tensor) -> None:
        if output.requires_grad:
            output.register_hook(lambda _: self._begin(part))

    def _begin(self, part: int) -> None:
        self.end()
        if part == 0:
            self._left_s, self._missing_s = self._step_s - self._optimizer_s, 0.0
            self._optimizer_s = 0.0
        spare_s = self._left_s * self._shares[part] - self._used_s[part] - self._missing_s
        self._missing_s = max(0.0, -spare_s)
        time.sleep(max(0.0, spare_s))
        self._running, self._began_s = part, time.thread_time()

    def _update(self, by_s: float) -> None:
        if self._running is None:  # else the part counts it
            self._optimizer_s += by_s


class Training:
    """The same data in the same order for every arm."""

    def __init__(self, options: dict[str, Any], rank: int) -> None:
        self.task = convergence_tasks.TASKS["transformer"]
        torch.manual_seed(options["seed"])
        self.net = model()
        (self.inner,) = OPTIMIZERS[options["optimizer"]]([*self.net.parameters()], options["lr"])
        self.rates = Rates([self.inner])  # whose groups are also those of what wraps it
        self.pace = Pace(self.net, self.inner)
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
        self.pace.end()
        optimizer.step()

    @torch.no_grad()
    def evaluate(self) -> float:
        return float(self.task.loss(self.net, self.held_out))  # type: ignore[arg-type]


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

    training = Training(options, rank)
    training.pace.hold(options["compute_ms"] / 1e3)
    optimizer = wrap(training, options["arm"])
    curve: list[tuple[int, float, float]] = []
    busy_s: list[float] = []
    spent_s, began_s = 0.0, time.perf_counter()
    for number in range(training.steps):
        training.step(number, optimizer)
        busy_s.append(training.pace.busy_s)
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
    slowest_s = stock.allgather(torch.tensor([median(busy_s)]), name="target.busy").max().item()
    return {"options": options, "busy_ms": 1e3 * slowest_s, "curve": curve, "stats": said}


def refusal(found: dict[str, Any]) -> str | None:
    """Why it does not count, if so."""
    busy_ms, step_ms = found["busy_ms"], found["options"]["compute_ms"]
    if busy_ms <= MOST_BUSY * step_ms:
        return None
    return (
        f"the processor needs {busy_ms:.0f} ms for a step, too long for steps of {step_ms:g} ms: "
        "wait until the machine is quiet, or give a larger --compute-ms"
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
