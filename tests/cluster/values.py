"""On every rank: exact values through the emulated accelerator, and the speed of both links."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import horovod.torch as stock
import torch
import torch.distributed as dist

import deft_horovod.torch as hvd
from scripts.cluster import accelerator, jobs, workloads

STEPS = 16
SIZE_BYTES = 3_000_000  # the all-reduce takes about three times as long as the computing
COMPUTE_S = 0.02
MEASURED_BYTES = 2_000_000


def value(rank: int, step: int) -> float:
    """Of the first parameter's gradient; small enough that all sums are exact."""
    return float((1 + rank) * (1 + step))


def trained(arm: dict[str, Any]) -> dict[str, Any]:
    """The parameters whose final value is not the exact sum of all averaged gradients, and whether
    updates came late."""
    workload = workloads.WORKLOADS["gpt2"]().scaled(SIZE_BYTES)
    model = accelerator.SleepingModel(workload, COMPUTE_S)
    optimizer: Any = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0),
        model.named_parameters(),
        policy=arm["policy"],
        config={"deadline_s": 20.0, **arm["config"]},
    )
    for step in range(STEPS):
        model.set_gradient(value(hvd.rank(), step))
        optimizer.zero_grad()
        model().backward()
        optimizer.step()
    stats = optimizer.stats()
    optimizer.flush()
    ranks = range(hvd.size())
    total = sum(sum(value(r, step) for r in ranks) / len(ranks) for step in range(STEPS))
    wrong = [
        name
        for number, (name, parameter) in enumerate(model.named_parameters())
        if not bool((parameter == -(total + number * STEPS)).all())
    ]
    links = [name for name, link in stats["links"].items() if link["messages"]]
    return {"wrong": wrong, "late": stats["late"], "links": links}


def fastest_s(operation: Any) -> float:
    times = []
    for _ in range(4):
        stock.barrier()
        began_s = time.perf_counter()
        operation()
        times.append(time.perf_counter() - began_s)
    return min(times)


def main(options: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    hvd.init()
    data = torch.ones(MEASURED_BYTES // 4)
    report: dict[str, Any] = {
        "first_s": fastest_s(lambda: stock.allreduce(data, name="speed")),
        "scheduler": os.sched_getscheduler(0),
        "calm": "calm.so" in os.environ.get("LD_PRELOAD", ""),
        "trained": [trained(arm) for arm in options["arms"]],
    }
    if options["second"]:
        os.environ["GLOO_SOCKET_IFNAME"] = "eth1"
        meeting = "tcp://10.77.1.1:29501"
        dist.init_process_group("gloo", init_method=meeting, rank=hvd.rank(), world_size=hvd.size())
        report["second_s"] = fastest_s(lambda: dist.all_reduce(data))
        dist.destroy_process_group()
    everyone = stock.allgather_object(report)
    if hvd.rank() == 0:
        Path(options["output"]).write_text(json.dumps(everyone))


if __name__ == "__main__":
    main(jobs.given_options())
