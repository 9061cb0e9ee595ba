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

import deft_horovod.torch as hvd
from deft_horovod.runtime.wrapper import DistributedOptimizer
from scripts.benchmarks.real_models.gpt import Gpt, batches, loss_of, windows_of

# What each arm is made with; None: stock Horovod.
ARMS: Mapping[str, Mapping[str, Any] | None] = {
    "alone": None,
    "stock": None,
    "stock + fp16": None,
    "auto, exact": {"accuracy": "exact"},
    "auto, equal": {"accuracy": "equal"},
    "auto, fast": {"accuracy": "fast"},
}
_QUICK = {"profile_warmup_steps": 1, "profile_steps": 4, "warmup_steps": 1, "trial_steps": 3}
_MOST_WARM_UP_STEPS = 120


@dataclass
class Arm:
    """One of them at work."""

    model: Gpt
    optimizer: Any
    data: Iterator[torch.Tensor]
    times_ms: list[float] = field(default_factory=list)  # of a step, by round
    losses: list[float] = field(default_factory=list)

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss = loss_of(self.model, next(self.data))
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


def make(name: str, options: Mapping[str, Any], windows: torch.Tensor) -> Arm:
    torch.manual_seed(0)
    model = Gpt(options["width"], options["layers"], options["length"])
    inner = torch.optim.AdamW(model.parameters(), lr=options["rate"])
    config = ARMS[name]
    optimizer: Any = inner
    if config is not None:
        optimizer = hvd.DistributedOptimizer(
            inner, model.named_parameters(), config={**_QUICK, **config}
        )
    elif name != "alone":
        compression = stock.Compression.fp16 if "fp16" in name else stock.Compression.none
        optimizer = stock.DistributedOptimizer(
            inner, model.named_parameters(), compression=compression
        )
    return Arm(model, optimizer, batches(windows, options["batch"], 1000 + stock.rank()))


def warm_up(arm: Arm) -> None:
    """All ranks settle at the same boundary."""
    for number in range(_MOST_WARM_UP_STEPS):
        arm.step()
        if number and arm.settled():
            return


def turn_ms(arm: Arm, steps: int) -> float:
    """The mean time of a step; the first one fills the link."""
    arm.step()
    stock.barrier()
    began_s = time.perf_counter()
    for _ in range(steps):
        arm.step()
    return 1e3 * (time.perf_counter() - began_s) / steps


def held_out_loss(arm: Arm, windows: torch.Tensor) -> float:
    arm.model.eval()
    with torch.no_grad():
        found = float(loss_of(arm.model, windows))
    arm.model.train()
    return found


def run(options: Mapping[str, Any]) -> None:
    hvd.init()
    torch.set_num_threads(1)
    windows, held = windows_of(options["length"])
    names = options["arms"]
    arms = {name: make(name, options, windows) for name in names}
    for arm in arms.values():
        warm_up(arm)
    for number in range(options["rounds"]):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            stock.barrier()
            arms[name].times_ms.append(turn_ms(arms[name], options["steps"]))
    found = {
        name: {
            "times_ms": arm.times_ms,
            "steps": len(arm.losses),
            "loss": held_out_loss(arm, held[: options["batch"] * 4]),
            "stats": _told(arm),
        }
        for name, arm in arms.items()
    }
    of_ranks = stock.allgather_object(found)
    if stock.rank() == 0:
        Path(options["output"]).write_text(json.dumps(of_ranks), encoding="utf-8")


def _told(arm: Arm) -> dict[str, Any]:
    stats = arm.stats()
    return {key: stats[key] for key in ("running", "formats", "trials_us") if key in stats}
