"""On each rank: every optimizer has a copy of the model, and all take turns with the same batches.

All train the same steps from the same beginning, so losses can be compared step by step. Ours
train more steps, before the others begin: `auto` measures and tries before it chooses.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import horovod.torch as stock
import torch

import deft_horovod.torch as hvd
from deft_horovod import comparison
from deft_horovod.runtime.wrapper import DistributedOptimizer
from scripts.benchmarks.real_models.gpt import Gpt, batches, loss_of, windows_of
from scripts.demo.outcome import (
    ALONE,
    COMPARISON_FILE,
    EXACT,
    FP16,
    OPTIONS,
    OURS,
    OUTCOME_FILE,
    STOCK,
    TITLES,
    Outcome,
    Trained,
)

_MOST_STEPS = 200  # until `auto` has chosen
_SAY_STEPS = 20


@dataclass
class Arm:
    """One optimizer with its own copy of the model."""

    name: str
    model: Gpt
    optimizer: Any
    data: Iterator[torch.Tensor]
    losses: list[float] = field(default_factory=list)  # of this rank
    rounds_ms: list[list[float]] = field(default_factory=list)

    @classmethod
    def make(cls, name: str, options: Mapping[str, Any], windows: torch.Tensor) -> Arm:
        torch.manual_seed(0)
        model = Gpt(options["width"], options["layers"], options["length"])
        optimizer: Any = torch.optim.AdamW(model.parameters(), lr=options["lr"])
        named = model.named_parameters()
        if name in OPTIONS:
            optimizer = hvd.DistributedOptimizer(optimizer, named, config=dict(OPTIONS[name]))
        elif name != ALONE:
            wire = stock.Compression.fp16 if name == FP16 else stock.Compression.none
            optimizer = stock.DistributedOptimizer(optimizer, named, compression=wire)
        return cls(name, model, optimizer, batches(windows, options["batch"], stock.rank()))

    @property
    def ours(self) -> DistributedOptimizer | None:
        return self.optimizer if isinstance(self.optimizer, DistributedOptimizer) else None

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss = loss_of(self.model, next(self.data))
        loss.backward()
        self.optimizer.step()
        self.losses.append(float(loss.detach()))

    def turn(self, steps: int) -> list[float]:
        """Their times in ms, those of the slowest rank; the first step finds an empty link and is
        not counted."""
        stock.barrier()
        times_ms = []
        for _ in range(steps):
            began_s = time.perf_counter()
            self.step()
            times_ms.append(1e3 * (time.perf_counter() - began_s))
        if self.ours is not None:
            self.ours.flush()
        of_ranks = stock.allgather_object(times_ms[1:])
        return [max(times) for times in zip(*of_ranks, strict=True)]

    def settle(self) -> None:
        """Trains until `auto` has chosen."""
        optimizer = self.ours
        if optimizer is None:
            return
        while len(self.losses) < _MOST_STEPS:
            self.step()
            if optimizer.stats()["phase"] == "settled":
                break
            if len(self.losses) % _SAY_STEPS == 0:
                say(f"{TITLES[self.name]}: step {len(self.losses)}, measuring and trying plans")
        optimizer.flush()
        say(f"{TITLES[self.name]}: chose {self.runs} after {len(self.losses)} steps")

    @property
    def runs(self) -> str:
        return str(self.ours.stats()["running"]) if self.ours is not None else ""

    def trained(self) -> Trained:
        of_ranks = stock.allgather_object(self.losses)
        losses = [fmean(step) for step in zip(*of_ranks, strict=True)]
        same = self.name == ALONE or self._same_everywhere()
        return Trained(self.rounds_ms, losses, same, self.runs)

    def _same_everywhere(self) -> bool:
        mine = torch.cat([p.detach().flatten() for p in self.model.parameters()])
        first = stock.broadcast(mine, root_rank=0, name=f"demo.replica.{self.name}")
        return all(stock.allgather_object(torch.equal(mine, first)))


def say(text: str) -> None:
    if stock.rank() == 0:
        print(f"demo: {text}", flush=True)


def take_turns(arms: list[Arm], rounds: int, steps: int) -> None:
    """Each begins a round once in a while; the first round warms up."""
    began_s = time.monotonic()
    for number in range(rounds + 1):
        first = number % len(arms)
        found = {arm.name: arm.turn(steps) for arm in arms[first:] + arms[:first]}
        for arm in arms if number else ():
            arm.rounds_ms.append(found[arm.name])
        left_s = (time.monotonic() - began_s) / (number + 1) * (rounds - number)
        of_arms = ", ".join(f"{arm.name} {median(found[arm.name]):.0f}" for arm in arms)
        what = f"round {number} of {rounds}" if number else "warming up"
        say(f"{what}, ms a step: {of_arms}; {left_s:.0f} s left")


def compared(arms: Mapping[str, Arm], outcome: Outcome) -> comparison.Comparison | None:
    """For the report; None where nothing of ours was measured."""
    profile = arms[OURS].optimizer.profile
    if profile is None:
        return None
    names = [STOCK, OURS, EXACT]
    policies = [comparison.STOCK, "auto", "auto, accuracy='exact'"]
    found = [
        comparison.Arm(
            policy=policy,
            rounds_us=tuple(tuple(1e3 * ms for ms in one) for one in outcome.arms[name].rounds_ms),
            plan=None if name == STOCK else arms[name].optimizer.plan,
        )
        for name, policy in zip(names, policies, strict=True)
    ]
    chosen = min(range(len(found)), key=lambda number: found[number].step_us)
    return comparison.Comparison(policy="auto", chosen=chosen, profile=profile, arms=tuple(found))


def run(options: Mapping[str, Any]) -> None:
    """On a rank; rank 0 leaves what came out in the folder."""
    torch.set_num_threads(1)
    hvd.init()
    windows, _ = windows_of(options["length"])
    arms = {name: Arm.make(name, options, windows) for name in TITLES}
    for arm in arms.values():
        arm.settle()
    take_turns(list(arms.values()), options["rounds"], options["steps"])
    size = sum(p.numel() * p.element_size() for p in arms[STOCK].model.parameters())
    found = {name: arm.trained() for name, arm in arms.items()}
    outcome = Outcome(options["link"], stock.size(), size, found)
    if stock.rank() == 0:
        folder = Path(options["folder"])
        (folder / OUTCOME_FILE).write_text(outcome.to_json(), encoding="utf-8")
        kept = compared(arms, outcome)
        if kept is not None:
            kept.save(folder / COMPARISON_FILE)
