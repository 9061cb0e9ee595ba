"""On each rank: arms with a copy of the model each take turns."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import horovod.torch as stock
import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel

import deft_horovod.torch as hvd
from deft_horovod.runtime.wrapper import DistributedOptimizer
from scripts.benchmarks.arms import start_gloo
from scripts.benchmarks.real_models.models import MODELS, Batch, Size, Subject
from scripts.benchmarks.real_models.thread_times import ThreadTimes, between

# What ours are made with. The first has no options: that is what two changed lines give.
OURS: Mapping[str, Mapping[str, Any]] = {
    "auto": {},
    "auto, exact": {"accuracy": "exact"},
    "auto, fast": {"accuracy": "fast"},
}
_QUICK = {"profile_warmup_steps": 1, "profile_steps": 4, "warmup_steps": 1, "trial_steps": 4}
_MOST_WARM_UP_STEPS = 120


@dataclass
class Arm:
    """One of them at work."""

    subject: Subject
    call: nn.Module  # the model, or what is around it
    optimizer: Any
    data: Iterator[Batch]
    times_ms: list[float] = field(default_factory=list)  # of a step, by round
    cpu_ms: list[dict[str, float]] = field(default_factory=list)  # of a step, by owner of threads
    losses: list[float] = field(default_factory=list)

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss = self.subject.loss(self.call, next(self.data))
        loss.backward()
        self.optimizer.step()
        self.losses.append(float(loss.detach()))

    def settled(self) -> bool:
        """Whether it has chosen."""
        return bool(self.stats().get("phase", "settled") == "settled")

    def stats(self) -> dict[str, Any]:
        """Of ours."""
        ours = isinstance(self.optimizer, DistributedOptimizer)
        return self.optimizer.stats() if ours else {}


def make(name: str, options: Mapping[str, Any]) -> Arm:
    torch.manual_seed(0)
    size = Size(options["width"], options["layers"], options["length"], options["batch"])
    subject = MODELS[options["model"]](size)
    model = subject.model
    inner = torch.optim.AdamW(model.parameters(), lr=options["rate"])
    call: nn.Module = model
    optimizer: Any = inner
    if name in OURS:
        config = {**_QUICK, **OURS[name]}
        optimizer = hvd.DistributedOptimizer(inner, model.named_parameters(), config=config)
    elif name.startswith("stock"):
        compression = stock.Compression.fp16 if "fp16" in name else stock.Compression.none
        optimizer = stock.DistributedOptimizer(
            inner, model.named_parameters(), compression=compression
        )
    elif name.startswith("DDP"):
        call = DistributedDataParallel(model, gradient_as_bucket_view=True)
        if "fp16" in name:
            call.register_comm_hook(None, fp16_compress_hook)
    return Arm(subject, call, optimizer, subject.data(1000 + stock.rank()))


def warm_up(arm: Arm) -> None:
    """All ranks settle at the same boundary."""
    for number in range(_MOST_WARM_UP_STEPS):
        arm.step()
        if number and arm.settled():
            return


def take_turn(arm: Arm, steps: int, threads: ThreadTimes) -> None:
    """The mean of its steps; the first one fills the link."""
    arm.step()
    stock.barrier()
    before, began_s = threads.now(), time.perf_counter()
    for _ in range(steps):
        arm.step()
    arm.times_ms.append(1e3 * (time.perf_counter() - began_s) / steps)
    spent = between(before, threads.now())
    arm.cpu_ms.append({owner: ms / steps for owner, ms in spent.items()})


def held_out_loss(arm: Arm) -> float:
    subject = arm.subject
    subject.model.eval()
    with torch.no_grad():
        found = float(subject.loss(subject.model, subject.held_out))
    subject.model.train()
    return found


def run(options: Mapping[str, Any]) -> None:
    torch.set_num_threads(1)
    threads = ThreadTimes()
    threads.started("computing")
    hvd.init()
    threads.started("Horovod")
    names = options["arms"]
    if any(name.startswith("DDP") for name in names):
        start_gloo(options["meeting"], "eth0", stock.rank(), stock.size())
        threads.started("torch.distributed")
    arms = {name: make(name, options) for name in names}
    for arm in arms.values():
        warm_up(arm)  # the connections of Horovod are made in the first message
        threads.started("ours" if arm.stats() else "Horovod")
    for number in range(options["rounds"]):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            stock.barrier()
            take_turn(arms[name], options["steps"], threads)
    found = {
        name: {
            "times_ms": arm.times_ms,
            "steps": len(arm.losses),
            "bytes": sum(p.numel() * p.element_size() for p in arm.subject.model.parameters()),
            "cpu_ms": arm.cpu_ms,
            "loss": held_out_loss(arm),
            "stats": _told(arm),
        }
        for name, arm in arms.items()
    }
    of_ranks = stock.allgather_object(found)
    if stock.rank() == 0:
        Path(options["output"]).write_text(json.dumps(of_ranks), encoding="utf-8")


def _told(arm: Arm) -> dict[str, Any]:
    stats = arm.stats()
    told = ("running", "formats", "trials_us", "prediction")
    return {key: stats[key] for key in told if key in stats}
