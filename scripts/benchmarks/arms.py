"""What scripts/benchmarks/cluster.py compares: each arm with its own copy of the model, made on
every rank."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

# Messages are scaled with the model: the defaults are meant for hundreds of megabytes, and a bucket
# that holds all of a scaled model overlaps with nothing.
BUCKETS = 8
PIECES = 10
PIECES_IN_FLIGHT = 2
# Correction is steps of the optimizer, and updates cost nothing here (docs/studies/benchmarks).
UNCORRECTED = {"correction": "none"}
DELAYED = {"max_delay": 1, "max_merge": 4, **UNCORRECTED}
# Short runs: the profile is taken in few steps, and nothing is put off for the sake of training.
QUICK_PLAN = {"profile_warmup_steps": 1, "profile_steps": 3, "warmup_steps": 0, "deadline_s": 60.0}
SETTLED_STEPS = 1  # without a new plan
_COMPRESSIONS = MappingProxyType({"stock": "none", "stock_fp16": "fp16"})  # of Horovod's own
MOST_WARM_UP_STEPS = 60

# Ramp and measured steps: whole periods of plans that merge up to four steps.
_PERIODS = (4, 8)

Config = Callable[[int], Mapping[str, Any]]  # of the bytes of the model's gradients


def _nothing(_: int) -> Mapping[str, Any]:
    return {}


def _bucket(size_bytes: int) -> Mapping[str, Any]:
    share = max(1024, size_bytes // BUCKETS)
    return {"bucket_bytes": share, "first_bucket_bytes": share}


def _priority(size_bytes: int) -> Mapping[str, Any]:
    piece = max(1024, size_bytes // PIECES)
    return {"partition_bytes": piece, "credit_bytes": PIECES_IN_FLIGHT * piece}


@dataclass(frozen=True)
class Kind:
    """How an arm is made, and how it has to be measured."""

    title: str
    policy: str | None = None  # of ours
    config: Config = _nothing
    # Before the steps that count: as many as it takes to fill what may be in flight.
    ramp_steps: int = 1
    measured_steps: int = 4
    warm_up_steps: int = 2  # at least
    second_link: bool = False


def _delayed(title: str, policy: str, second_link: bool = False) -> Kind:
    interface = {"second_interface": "eth1"} if second_link else {}
    return Kind(
        title,
        policy,
        lambda _: {**DELAYED, **interface},
        *_PERIODS,
        warm_up_steps=6,
        second_link=second_link,
    )


def _in_time(accuracy: str, title: str = "", policy: str = "least_stale") -> Kind:
    """In wire formats, nothing late."""
    config = {"accuracy": accuracy, "max_delay": 0, "max_merge": 1}
    return Kind(title or f"{accuracy}, no delay", policy, lambda _: config, warm_up_steps=6)


def _rival(policy: str, config: Config = _nothing, ramp_steps: int = 1, steps: int = 4) -> Kind:
    """A published scheduler, which plans from its own profile of the job."""
    return Kind(policy, policy, config, ramp_steps, steps, warm_up_steps=6)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "alone": Kind("computing alone", warm_up_steps=1),
        "stock": Kind("stock Horovod"),
        "stock_fp16": Kind("stock Horovod, Compression.fp16"),
        "ddp": Kind("DDP (Gloo)", warm_up_steps=3),  # it orders its buckets anew after one step
        "wfbp": Kind("wfbp", "wfbp"),
        "ddp_buckets": Kind("ddp", "ddp", _bucket),
        "mgwfbp": _rival("mgwfbp"),
        "p3": _rival("p3"),
        "bytescheduler": _rival("bytescheduler"),
        "usbyte": _rival("usbyte"),
        "dear": _rival("dear"),
        "dcredit": _rival("dcredit"),
        "covap": _rival("covap", lambda _: {"max_merge": 4}, *_PERIODS),
        "sapipe": _rival("sapipe", lambda _: {"max_delay": 1, **UNCORRECTED}, *_PERIODS),
        "bucket": Kind("bucket", "bucket", _bucket),
        "priority": Kind("priority", "priority", _priority, warm_up_steps=6),
        "deft": _delayed("deft", "deft"),
        "least_stale": _delayed("least_stale", "least_stale"),
        "sync": Kind(
            "least_stale, no delay",
            "least_stale",
            lambda _: {"max_delay": 0, "max_merge": 1},
            warm_up_steps=6,
        ),
        "equal": _in_time("equal"),
        "fast": _in_time("fast"),
        "fewest": _in_time("equal", "fewest_bytes", "fewest_bytes"),
        "deft_two": _delayed("deft, two links", "deft", second_link=True),
        "least_stale_two": _delayed("least_stale, two links", "least_stale", second_link=True),
    }
)


@dataclass
class Arm:
    """One of them at work on this rank."""

    name: str
    kind: Kind
    model: Any
    call: Callable[[], Any]  # returns the loss
    optimizer: Any
    rounds: list[dict[str, Any]] = field(default_factory=list)
    warm_up_ms: list[float] = field(default_factory=list)  # of each step; planning takes its time

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.call().backward()
        self.optimizer.step()

    def stats(self) -> dict[str, Any]:
        return self.optimizer.stats() if self.kind.policy else {}

    def drain(self) -> None:
        """Nothing of this arm travels any more."""
        if self.kind.policy:
            self.optimizer.flush()

    def warm_up(self) -> None:
        """Until its plan stays what it is. All ranks plan at the same boundary, so all stop here
        after the same step."""
        seen, since = None, 0
        while len(self.warm_up_ms) < MOST_WARM_UP_STEPS:
            began_s = time.perf_counter()
            self.step()
            self.warm_up_ms.append(round(1e3 * (time.perf_counter() - began_s), 1))
            stats = self.stats()
            plan = tuple(stats.get(key) for key in ("policy", "phase", "plans", "plan"))
            since = since + 1 if plan == seen else 0
            seen = plan
            settled = stats.get("phase", "settled") == "settled" and since >= SETTLED_STEPS
            if settled and len(self.warm_up_ms) >= self.kind.warm_up_steps:
                break
        self.drain()


def available(names: list[str], second_link: bool) -> tuple[list[str], dict[str, str]]:
    """Those that can run here, and for the others why they cannot."""
    from deft_horovod.policies import registry

    missing = {}
    for name in names:
        policy = KINDS[name].policy
        if policy is not None and policy not in registry():
            missing[name] = f"there is no policy {policy}"
        elif KINDS[name].second_link and not second_link:
            missing[name] = "there is no second link"
    return [name for name in names if name not in missing], missing


def make(name: str, workload: Any, compute_s: float, overrides: Mapping[str, Any]) -> Arm:
    """An arm; `overrides` are options of deft_horovod for this arm."""
    import horovod.torch as stock

    import deft_horovod.torch as hvd
    from scripts.cluster.accelerator import DeviceSgd, SleepingModel

    kind = KINDS[name]
    model = SleepingModel(workload, compute_s)
    optimizer: Any = DeviceSgd(model.parameters(), lr=1.0)
    call: Callable[[], Any] = model
    if name in _COMPRESSIONS:
        compression = getattr(stock.Compression, _COMPRESSIONS[name])
        optimizer = stock.DistributedOptimizer(
            optimizer, model.named_parameters(), compression=compression
        )
    elif name == "ddp":
        call = _ddp(model, workload.size_bytes)
    elif kind.policy is not None:
        config = {**QUICK_PLAN, **kind.config(workload.size_bytes), **overrides}
        optimizer = hvd.DistributedOptimizer(
            optimizer, model.named_parameters(), policy=kind.policy, config=config
        )
    return Arm(name, kind, model, call, optimizer)


def _ddp(model: Any, size_bytes: int) -> Callable[[], Any]:
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(
        model,
        bucket_cap_mb=size_bytes / BUCKETS / 2**20,
        gradient_as_bucket_view=True,
        init_sync=False,  # all parameters are zero
    )


def start_gloo(address: str, interface: str, rank: int, size: int) -> None:
    """torch.distributed over the same link as Horovod."""
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = interface
    dist.init_process_group("gloo", init_method=f"tcp://{address}", rank=rank, world_size=size)
