"""What our hooks and packing cost a step when there is hardly anything to communicate.

One rank trains three copies of a model in turn: plain torch, stock Horovod, ours. A lone rank has
no hooks, unless it is an elastic worker that may get peers; so this one says that it is.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from scripts.gpu import results as gpu_results
from scripts.gpu.measure import clock as gpu_clock
from scripts.gpu.measure import models as gpu_models

ARMS = ("torch", "stock", "ours")
LIMIT = 1.01
WARM_UP = 8


@dataclass
class Arm:
    """One copy at work."""

    model: Any
    optimizer: Any
    batch: gpu_models.Batch

    def step(self) -> None:
        self.optimizer.zero_grad()
        gpu_models.loss_of(self.model, self.batch).backward()
        self.optimizer.step()


def make_arm(kind: str, options: argparse.Namespace) -> Arm:
    import horovod.torch as stock

    import deft_horovod.torch as hvd

    model = gpu_models.make(options.model, options.device)
    optimizer: Any = gpu_models.optimizer_of(options.model, model)
    named = [(f"{kind}.{name}", parameter) for name, parameter in model.named_parameters()]
    if kind == "stock":
        optimizer = stock.DistributedOptimizer(optimizer, named)
    elif kind == "ours":
        optimizer = hvd.DistributedOptimizer(optimizer, named, policy=options.policy)
    return Arm(
        model, optimizer, gpu_models.batch_of(options.model, options.device, 0, options.rows)
    )


def block_ms(step: Callable[[], None], steps: int, device: str) -> float:
    """The mean step of a block, begun and ended with an idle device."""
    gpu_clock.finish(device)
    began_s = time.perf_counter()
    for _ in range(steps):
        step()
    gpu_clock.finish(device)
    return (time.perf_counter() - began_s) / steps * 1e3


def measure(arms: dict[str, Arm], options: argparse.Namespace) -> list[dict[str, float]]:
    """Milliseconds of each arm in every round; who begins changes."""
    for arm in arms.values():
        for _ in range(WARM_UP):
            arm.step()
    rounds, names = [], list(arms)
    for number in range(options.rounds):
        turn = number % len(names)
        order = names[turn:] + names[:turn]
        rounds.append({n: block_ms(arms[n].step, options.steps, options.device) for n in order})
    return rounds


def summary(rounds: list[dict[str, float]]) -> dict[str, Any]:
    """Steps, and their ratios to plain torch taken round by round."""
    steps_ms = {name: gpu_clock.spread([entry[name] for entry in rounds]) for name in ARMS}
    ratios = {
        name: gpu_clock.spread([entry[name] / entry["torch"] for entry in rounds])
        for name in ARMS[1:]
    }
    return {"step_ms": steps_ms, "ratio_to_torch": ratios}


def headline(found: dict[str, Any], model: str) -> str:
    steps, ratios = found["step_ms"], found["ratio_to_torch"]
    ours, stock = ratios["ours"]["median"], ratios["stock"]["median"]
    verdict = "met" if ours <= LIMIT else "MISSED"
    return (
        f"{model}: torch {steps['torch']['median']:.2f} ms, ours {ours - 1:+.1%}, stock Horovod "
        f"{stock - 1:+.1%}; target of {LIMIT - 1:+.0%}: {verdict}"
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=tuple(gpu_models.MODELS), default="resnet50")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=10, help="of a block")
    parser.add_argument("--policy", default="bucket")
    options = parser.parse_args(arguments)
    import torch

    import deft_horovod.torch as hvd

    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True
    # The name of a bare machine need not resolve.
    os.environ.setdefault("HOROVOD_GLOO_IFACE", "lo")
    hvd.init()
    # After Horovod has started: its own elastic mode wants a driver.
    os.environ["HOROVOD_ELASTIC"] = "1"
    arms = {kind: make_arm(kind, options) for kind in ARMS}
    rounds = measure(arms, options)
    found = summary(rounds)
    stats = arms["ours"].optimizer.stats()
    if not stats.get("messages"):
        gpu_results.report(f"our optimizer sent nothing: {stats}", stats=stats)
        return 1
    found |= {"rounds": rounds, "messages": stats["messages"], "steps": stats["steps"]}
    found["median_of_rounds"] = median(entry["ours"] / entry["torch"] for entry in rounds)
    gpu_results.report(headline(found, options.model), options=vars(options), **found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
