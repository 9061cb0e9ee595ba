"""Step times of our defaults and of stock Horovod on slow links, with real computing on the device.

Two hosts made of network namespaces, a rank on each, both on one device. The links get a rate at
which the all-reduce of all gradients takes as long as the computing, which is measured first.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from scripts.cluster import cluster, jobs, workloads
from scripts.gpu import results as gpu_results
from scripts.gpu.measure import clock as gpu_clock
from scripts.gpu.measure import models as gpu_models

HOSTS = 2
FIRST_RATE_MBIT = 2000
LOWEST_MBIT, HIGHEST_MBIT = 20, 10_000
ARMS = ("stock", "fp16", "ours")  # stock Horovod, the same with its Compression.fp16, our defaults
ROUNDS, STEPS = 5, 3
MOST_WARM_UP_STEPS = 90
LIMIT_S = 150
TOLD = ("policy", "phase", "running", "plans", "formats", "max_delay")
DEADLINE_S = 60.0
ROWS = {"resnet50": 256, "tiny_resnet": 64, "tiny_gpt2": 64}


def rate_mbit(size_bytes: int, compute_s: float) -> int:
    """At which a ring over the hosts carries so much in that time."""
    line_bytes = size_bytes * 2 * (HOSTS - 1) / HOSTS
    rate = line_bytes * 8 / 1e6 / workloads.GOODPUT / compute_s
    return round(max(LOWEST_MBIT, min(HIGHEST_MBIT, rate)))


class Arm:
    """One copy of the model."""

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        import horovod.torch as stock

        import deft_horovod.torch as hvd

        name, device = options["model"], options["device"]
        self.kind, self.model = kind, gpu_models.make(name, device)
        self.batch = gpu_models.batch_of(name, device, stock.rank(), ROWS.get(name, 0))
        self.optimizer: Any = gpu_models.optimizer_of(name, self.model)
        named = [(f"{kind}.{key}", p) for key, p in self.model.named_parameters()]
        if kind in ("stock", "fp16"):
            compression = stock.Compression.fp16 if kind == "fp16" else stock.Compression.none
            self.optimizer = stock.DistributedOptimizer(
                self.optimizer, named, compression=compression
            )
        elif kind == "ours":
            config = {"deadline_s": DEADLINE_S}
            self.optimizer = hvd.DistributedOptimizer(self.optimizer, named, config=config)

    def step(self) -> None:
        self.optimizer.zero_grad()
        gpu_models.loss_of(self.model, self.batch).backward()
        self.optimizer.step()

    def settle(self) -> None:
        """Until the plan is chosen, on all ranks alike."""
        for number in range(MOST_WARM_UP_STEPS):
            self.step()
            phase = self.optimizer.stats().get("phase") if self.kind == "ours" else "settled"
            if phase == "settled" and number >= 2:
                return

    def drain(self) -> None:
        if self.kind == "ours":
            self.optimizer.flush()


def block_ms(arm: Arm, device: str) -> float:
    import horovod.torch as stock

    arm.step()
    gpu_clock.finish(device)
    stock.barrier()
    began_s = time.perf_counter()
    for _ in range(STEPS):
        arm.step()
    gpu_clock.finish(device)
    took_s = time.perf_counter() - began_s
    arm.drain()
    return took_s / STEPS * 1e3


def rank_program(options: dict[str, Any]) -> None:
    import horovod.torch as stock
    import torch

    import deft_horovod.torch as hvd

    hvd.init()
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    arms = {kind: Arm(kind, options) for kind in options["arms"]}

    def tell(text: str) -> None:
        if stock.rank() == 0:
            print(text, flush=True)

    for arm in arms.values():
        began_s = time.perf_counter()
        arm.settle()
        tell(f"{arm.kind}: ready after {time.perf_counter() - began_s:.1f} s")
    names = list(arms)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(ROUNDS):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            times[name].append(block_ms(arms[name], options["device"]))
        latest = {name: round(times[name][-1]) for name in names}
        tell(f"round {number + 1}, in ms: {latest}")
    slowest = stock.allgather_object(times, name="links.times")
    for name in names:
        found[name] = [max(rank[name][i] for rank in slowest) for i in range(ROUNDS)]
    if "ours" in arms:
        stats = arms["ours"].optimizer.stats()
        found["stats"] = {key: stats.get(key) for key in TOLD}
    size = sum(p.numel() * p.element_size() for p in arms[names[0]].model.parameters())
    if stock.rank() == 0:
        answer = json.dumps({"steps_ms": found, "bytes": size}, default=str)
        Path(options["answer"]).write_text(answer, encoding="utf-8")
    stock.barrier()


def run(options: dict[str, Any], arms: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """A job on the hosts that are up."""
    answer = folder / f"{'-'.join(arms)}.json"
    given = {**options, "arms": arms, "answer": str(answer)}
    command = jobs.program("scripts.gpu.measure.links")
    words, environment = cluster.job(HOSTS, command, jobs.environment(given))
    status = jobs.stream(words, environment, limit_s=LIMIT_S, end=cluster.clear)
    if status != 0 or not answer.is_file():
        raise RuntimeError(f"the job of {', '.join(arms)} ended with status {status}")
    found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return found


def measure(options: dict[str, Any]) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory(prefix="gpu-links-") as name,
        cluster.standing(HOSTS, FIRST_RATE_MBIT),
    ):
        alone = run(options, ("alone",), Path(name))
        compute_ms = median(alone["steps_ms"]["alone"])
        rate = rate_mbit(alone["bytes"], compute_ms / 1e3)
        print(f"computing {compute_ms:.0f} ms; links of {rate} Mbit/s", flush=True)
        cluster.change_rate(rate)
        both = run(options, ARMS, Path(name))
    return {"compute_ms": compute_ms, "rate_mbit": rate, **both}


def headline(found: dict[str, Any], model: str) -> str:
    steps = found["steps_ms"]
    stock, fp16, ours = (median(steps[name]) for name in ARMS)
    gains = [
        median(a / b for a, b in zip(steps[name], steps["ours"], strict=True)) for name in ARMS[:2]
    ]
    return (
        f"{model}, {HOSTS} emulated hosts of {found['rate_mbit']} Mbit/s sharing a device: "
        f"computing {found['compute_ms']:.0f} ms, stock Horovod {stock:.0f} ms, in fp16 "
        f"{fp16:.0f} ms, ours {ours:.0f} ms: {gains[0]:.2f} times stock, {gains[1]:.2f} times fp16"
    )


def main() -> int:
    given = jobs.given_options()
    if given is not None:
        rank_program(given)
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=tuple(gpu_models.MODELS), default="gpt2")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options = vars(parser.parse_args())
    jobs.exit_on_sigterm()
    try:
        found = measure(options)
    except cluster.ClusterError as error:
        gpu_results.leave_out(f"no emulated hosts here: {error}")
    gpu_results.report(headline(found, options["model"]), cores=os.cpu_count(), **found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
