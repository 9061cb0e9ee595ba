"""One process run of scripts/benchmarks/cluster.py, on every rank: all arms in turn, a few steps at
a time."""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from deft_horovod.workloads.workload import ITEM_BYTES, Workload
from scripts.benchmarks import arms as bench_arms
from scripts.cluster import jobs, workloads

CHUNKS = 4
ALONE_REPEATS = 3


def workload_of(options: dict[str, Any]) -> Workload:
    size_bytes = workloads.gradient_bytes(
        options["hosts"], options["rate_mbit"], options["ccr"], options["compute_ms"] / 1e3
    )
    return workloads.WORKLOADS[options["profile"]]().scaled(size_bytes)


def communication_ms(size_bytes: int) -> list[float]:
    """What one all-reduce of everything takes while nothing else happens."""
    import horovod.torch as stock
    import torch

    chunks = [torch.zeros(size_bytes // ITEM_BYTES // CHUNKS) for _ in range(CHUNKS)]
    times = []
    for _ in range(ALONE_REPEATS):
        stock.barrier()
        began_s = time.perf_counter()
        handles = [
            stock.allreduce_async_(chunk, name=f"bench.alone.{i}") for i, chunk in enumerate(chunks)
        ]
        for handle in handles:
            stock.synchronize(handle)
        times.append(1e3 * (time.perf_counter() - began_s))
    return times[1:]  # the first one negotiates


def measure(arm: bench_arms.Arm) -> None:
    """One round: the steps that count follow each other with the arm's own traffic in flight."""
    import horovod.torch as stock

    stock.barrier()
    arm.model.clock.restart()
    for _ in range(arm.kind.ramp_steps):
        arm.step()
    steps_ms = []
    clock = arm.model.clock
    waited_s, late_s = clock.waited_s, clock.late_s
    busy_s, last_s = time.process_time(), time.perf_counter()
    began_s = last_s
    for _ in range(arm.kind.measured_steps):
        arm.step()
        now_s = time.perf_counter()
        steps_ms.append(round(1e3 * (now_s - last_s), 3))
        last_s = now_s
    seen = {
        "steps_ms": steps_ms,
        "cores": round((time.process_time() - busy_s) / (last_s - began_s), 3),
        "waited_ms": round(1e3 * (clock.waited_s - waited_s) / len(steps_ms), 3),
        "late_ms": round(1e3 * (clock.late_s - late_s) / len(steps_ms), 3),
    }
    arm.rounds.append(seen)
    arm.drain()


def measure_all(arms: list[bench_arms.Arm], options: dict[str, Any], deadline_s: float) -> None:
    """Rounds until the time is up; at least one."""
    import horovod.torch as stock

    number, longest_s = 0, 0.0
    while True:
        began_s = time.monotonic()
        turn = (options["run"] + number) % len(arms)
        for arm in arms[turn:] + arms[:turn]:
            measure(arm)
        number += 1
        longest_s = max(longest_s, time.monotonic() - began_s)
        more = number < options["rounds"] and time.monotonic() + longest_s < deadline_s
        if not stock.broadcast_object(more, root_rank=0, name="bench.more"):
            return


def plain(value: Any) -> Any:
    """As JSON has it, also where it is a record."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return json.loads(json.dumps(value, default=plain)) if isinstance(value, dict | list) else value


def link_costs(arms: list[bench_arms.Arm]) -> dict[str, dict[str, float]]:
    """Of Horovod's link, as the arms have measured it, by operation: the median of them."""
    profiles = [arm.optimizer.profile for arm in arms if arm.kind.policy]
    links = [profile.links[0] for profile in profiles if profile is not None and profile.links]
    found = {}
    for kind in ("cost", "scatter_cost", "gather_cost"):
        costs = [cost for link in links if link.samples and (cost := getattr(link, kind))]
        if costs:
            found[kind] = {
                "alpha_us": median(cost.alpha_us for cost in costs),
                "beta_us_per_byte": median(cost.beta_us_per_byte for cost in costs),
                "cycle_us": median(cost.cycle_us for cost in costs),
            }
    return found


def versions() -> dict[str, str]:
    import horovod
    import torch

    import deft_horovod

    return {
        "deft_horovod": deft_horovod.__version__,
        "horovod": horovod.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def worker(options: dict[str, Any]) -> None:
    import horovod.torch as stock
    import torch

    import deft_horovod.torch as hvd

    began_s = time.monotonic()
    torch.set_num_threads(1)
    hvd.init()
    names, missing = bench_arms.available(options["arms"], bool(options["second_rate_mbit"]))
    if "ddp" in names:
        bench_arms.start_gloo(options["meeting"], options["interface"], hvd.rank(), hvd.size())
    workload = workload_of(options)
    compute_s = options["compute_ms"] / 1e3
    overrides = options["config"]
    arms = [bench_arms.make(name, workload, compute_s, overrides.get(name, {})) for name in names]
    alone_ms = communication_ms(workload.size_bytes)
    for arm in arms:
        stock.barrier()
        arm.warm_up()
    # A collection over the objects of all arms would take tens of milliseconds of one of them.
    gc.collect()
    gc.freeze()
    warm_s = time.monotonic() - began_s
    measure_all(arms, options, began_s + options["seconds"])
    per_rank = stock.allgather_object({arm.name: arm.rounds for arm in arms})
    if hvd.rank() == 0:
        result = {
            "options": options,
            "versions": versions(),
            "gradient_bytes": workload.size_bytes,
            "tensors": workload.tensors,
            "communication_ms": median(alone_ms),
            "missing": missing,
            "link": link_costs(arms),
            "warm_up_s": round(warm_s, 1),
            "seconds": round(time.monotonic() - began_s, 1),
            "arms": {
                arm.name: {
                    "rounds": [ranks[arm.name] for ranks in per_rank],
                    "warm_up_ms": arm.warm_up_ms,
                    "stats": plain(arm.stats()),
                }
                for arm in arms
            },
        }
        path = Path(options["output"])
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(result, default=plain), encoding="utf-8")
        unfinished.replace(path)  # whole or not there


if __name__ == "__main__":
    given = jobs.given_options()
    if given is None:
        sys.exit("cluster_ranks is started by scripts.benchmarks.cluster")
    worker(given)
