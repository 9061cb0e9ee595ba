"""One job of scripts.benchmarks.beside_ddp.run, on every rank: all arms in turn. Horovod only
starts it."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from scripts.benchmarks.arms import BUCKETS, QUICK_PLAN, Arm, Kind, start_gloo
from scripts.benchmarks.cluster_ranks import workload_of
from scripts.cluster import jobs
from scripts.cluster.accelerator import DeviceSgd, SleepingModel

_IN_TIME = {"max_delay": 0, "max_merge": 1}
_OURS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "exact": {"config": {"accuracy": "exact"}},
        "exact_fp16": {"config": {"accuracy": "exact"}, "compression": "fp16"},
        "equal": {"config": {"accuracy": "equal", **_IN_TIME}},
    }
)
# Scripts of DDP under `python -m deft_horovod --torchrun`.
_TAKEN: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"taken": {"accuracy": "exact"}, "taken_equal": {"accuracy": "equal"}}
)
_POWER_SGD = "ddp_powersgd"
_RANK = 4  # of the matrices that PowerSGD sends
NAMES = ("alone", "ddp", "ddp_fp16", _POWER_SGD, *_OURS, *_TAKEN)


def _ddp(model: Any, size_bytes: int, name: str) -> Callable[[], Any]:
    # Its buckets are of 25 MB, for models that are not scaled. Each bucket of PowerSGD's hook
    # blocks one of Gloo's two threads while it waits for another message: two of them hang.
    buckets = 0.5 if name == _POWER_SGD else BUCKETS
    wrapped = DistributedDataParallel(
        model,
        bucket_cap_mb=size_bytes / buckets / 2**20,
        gradient_as_bucket_view=True,
        init_sync=False,  # all parameters are zero
    )
    if name == "ddp_fp16":
        wrapped.register_comm_hook(None, fp16_compress_hook)
    if name == _POWER_SGD:
        # The gradients are zero, which cannot be made orthogonal.
        state = PowerSGDState(None, _RANK, start_powerSGD_iter=2, orthogonalization_epsilon=1e-8)
        wrapped.register_comm_hook(state, powerSGD_hook)
    return wrapped


def _taken(model: Any, name: str) -> tuple[Any, Any]:
    """As the script makes them. From then on torch's class is another one, so these are last."""
    from deft_horovod.config import Config
    from deft_horovod.distributed.substitute import substitute

    substitute(Config.load({**QUICK_PLAN, **_IN_TIME, **_TAKEN[name]}, "least_stale"))
    return nn.parallel.DistributedDataParallel(model), DeviceSgd(model.parameters(), lr=1.0)


def make(name: str, options: dict[str, Any]) -> Arm:
    from deft_horovod.distributed import DistributedOptimizer

    workload = workload_of(options)
    model = SleepingModel(workload, options["compute_ms"] / 1e3, square=name == _POWER_SGD)
    optimizer: Any
    if name in _TAKEN:
        call, optimizer = _taken(model, name)
        return Arm(name, Kind(name, "least_stale", warm_up_steps=6), model, call, optimizer)
    optimizer = DeviceSgd(model.parameters(), lr=1.0)
    if name in _OURS:
        given = dict(_OURS[name])
        config = {**QUICK_PLAN, **given.pop("config")}
        optimizer = DistributedOptimizer(
            optimizer, model, policy="least_stale", config=config, **given
        )
        return Arm(name, Kind(name, "least_stale", warm_up_steps=6), model, model, optimizer)
    call = model if name == "alone" else _ddp(model, workload.size_bytes, name)
    return Arm(name, Kind(name, warm_up_steps=3), model, call, optimizer)


def step_ms(arm: Arm) -> float:
    """Of a few steps that follow each other."""
    dist.barrier()
    arm.model.clock.restart()
    for _ in range(arm.kind.ramp_steps):
        arm.step()
    began_s = time.perf_counter()
    for _ in range(arm.kind.measured_steps):
        arm.step()
    took_ms = 1e3 * (time.perf_counter() - began_s) / arm.kind.measured_steps
    arm.drain()
    return round(took_ms, 3)


def worker(options: dict[str, Any]) -> None:
    rank, size = (int(os.environ[f"HOROVOD_{name}"]) for name in ("RANK", "SIZE"))
    torch.set_num_threads(1)
    start_gloo(options["meeting"], options["interface"], rank, size)
    arms = [make(name, options) for name in NAMES]
    for arm in arms:
        dist.barrier()
        arm.warm_up()
    # A collection over the objects of all arms would take tens of milliseconds of one of them.
    gc.collect()
    gc.freeze()
    times_ms: dict[str, list[float]] = {arm.name: [] for arm in arms}
    for number in range(options["rounds"]):
        first = number % len(arms)
        for arm in arms[first:] + arms[:first]:
            times_ms[arm.name].append(step_ms(arm))
    if rank == 0:
        Path(options["output"]).write_text(
            json.dumps({"options": options, "times_ms": times_ms}), encoding="utf-8"
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    given = jobs.given_options()
    if given is None:
        sys.exit("beside_ddp.ranks is started by scripts.benchmarks.beside_ddp.run")
    worker(given)
