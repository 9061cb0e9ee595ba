"""Elastic training on this machine: failures lead back to the last commit, and on from there."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import Any

import horovod.torch as stock
import torch

import deft_horovod.torch as hvd
from deft_horovod.runtime.extension import native
from tests.parallel.scripts.failures.failing import SMALL, everybody_equal, network
from tests.parallel.scripts.late_plans import Late, plan_of
from tests.parallel.scripts.reporting import options, report

STEPS = 15
COMMIT_EVERY = 3
FORMAT = "int8"
# What happens in which step, once. The campaign of tests/faults asks for each error by itself.
FAILURES = {
    "errors": {7: "error", 10: "metric"},
    "error": {7: "error"},
    "metric": {7: "metric"},
    "killed": {7: "killed"},
}


def _once(what: str) -> bool:
    """True for the first process that asks, over all of the job's life."""
    try:
        (Path(os.environ["PARALLEL_RESULTS"]) / what).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _fail(how: str) -> None:
    """On one rank, once: in the middle of a step, with gradients on their way."""
    if how == "error":
        raise stock.HorovodInternalError("injected")
    if how == "metric":  # Horovod fails elsewhere first: a shutdown under everybody's feet
        stock.shutdown()
        stock.allreduce(torch.ones(1), name="metric")
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)


def step(model: Any, optimizer: Any, number: int, may_fail: bool = True) -> None:
    optimizer.zero_grad()
    inputs = torch.linspace(-1, 1, 12).reshape(4, 3) * (1 + number % 5)  # the same on all ranks
    (model(inputs).pow(2).mean() / 100).backward()
    last = hvd.size() > 1 and hvd.rank() == hvd.size() - 1
    failure = FAILURES[options()["how"]].get(number)
    if may_fail and last and failure and _once(failure):
        _fail(failure)
    optimizer.step()


def waits_for_the_other(state: Any) -> bool:
    """Trains on until a killed rank is back, and then for STEPS more, together."""
    if hvd.size() == 1:
        time.sleep(0.05)
        state.alone = state.step
    return bool(state.step < state.alone + STEPS)


def plan_file(model: Any) -> str:
    """A plan in which all values travel in one format. Who comes later writes the same again."""
    path = Path(os.environ["PARALLEL_RESULTS"]) / "plan.json"
    mine = path.with_suffix(f".{os.getpid()}")
    plan_of(model, [Late()] * len([*model.parameters()]), wire_format=FORMAT).save(mine)
    mine.replace(path)
    return str(path)


class Rounding:
    """What a wire format does to the gradients of one rank, before each update."""

    def __init__(self, model: Any, optimizer: torch.optim.Optimizer) -> None:
        self.parameters = list(model.parameters())
        self.rests = [torch.zeros(p.numel()) for p in self.parameters]
        optimizer.register_step_pre_hook(self._round)

    def forget(self) -> None:
        for rest in self.rests:
            rest.zero_()

    def _round(self, *_: object) -> None:
        for p, rest in zip(self.parameters, self.rests, strict=True):
            data = native.wire_encode(FORMAT, p.grad.flatten(), rest)
            p.grad = native.wire_decode(FORMAT, data, p.numel()).reshape(p.shape)


def reference(steps: int, resized: Collection[int] = ()) -> list[float]:
    """As all ranks have the same data, the average of their gradients is that of one. Before the
    steps `resized` the number of ranks has changed, and rests are lost."""
    model = network(3, 30, 30, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    rounding = Rounding(model, optimizer) if options().get("formats") else None
    for number in range(steps):
        if rounding is not None and number in resized:
            rounding.forget()
        step(model, optimizer, number, may_fail=False)
    return flat(model)


def flat(model: Any) -> list[float]:
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()


def main() -> None:
    hvd.init()
    model = network(3, 30, 30, 2, seed=hvd.rank())
    if hvd.rank() == 0:
        model = network(3, 30, 30, 2)
    inner = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    formats = {"plan_file": plan_file(model)} if options().get("formats") else {}
    optimizer = hvd.DistributedOptimizer(
        inner,
        named_parameters=model.named_parameters(),
        policy=options()["policy"],
        config={**SMALL, **formats},
    )
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0, alone=0)
    history: list[int] = []
    sizes: list[int] = []

    @hvd.elastic.run
    def train(state: Any) -> None:
        history.append(state.step)
        sizes.append(hvd.size())
        while state.step < STEPS or (options()["regrow"] and waits_for_the_other(state)):
            step(state.model, state.optimizer, state.step)
            state.step += 1
            if state.step % COMMIT_EVERY == 0:
                state.commit()

    train(state)
    optimizer.flush()
    os.environ["HOROVOD_RANK"] = str(hvd.rank())  # the launcher's may be from before a reset
    worlds = zip(history, sizes, strict=True)
    resized = {step for (_, before), (step, now) in pairwise(worlds) if now != before}
    found = {
        "history": history,
        "size": hvd.size(),
        "equal": everybody_equal(model),
        "parameters": flat(model),
        "expected": reference(state.step, resized),
        "plans": optimizer.stats()["plans"],
        "late": optimizer.stats()["late"],
        "dropped": optimizer.stats().get("dropped"),
        "dropped_rests": optimizer.stats().get("dropped_rests"),
        "formats": [*optimizer.stats().get("formats", ())],
    }
    report(found)


if __name__ == "__main__":
    main()
