"""Published comparisons, played by the simulator: jobs on networks, under every policy.

What the scripts of this room have in common. A job is a model and the time that its step computes
on one GPU; each layer takes the share of it that it has of the model's arithmetic (assumed). A
network is what messages cost there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from deft_horovod import policies
from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.plan import Plan
from deft_horovod.policies import Policy, Request
from deft_horovod.policies.published.wfbp import Wfbp
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.simulate.cluster import Cluster, on_cluster
from deft_horovod.simulate.outlook import Outlook, Scenario
from deft_horovod.workloads.workload import Workload

EXACT = "exact"
LATE = "late"
LOSSY = "lossy"
# As the reports say it.
KINDS: Mapping[str, str] = MappingProxyType(
    {
        EXACT: "trains as stock Horovod does",
        LATE: "updates come later, nothing is lost",
        LOSSY: "parameters miss updates of other steps",
    }
)


class UnfusedWfbp(Wfbp):
    """As the papers measure it: Horovod is told to fuse nothing (threshold 0)."""

    def plan(self, request: Request) -> Plan:
        plan = super().plan(request)
        links = tuple(link.model_copy(update={"fusion": False}) for link in plan.links)
        return plan.model_copy(update={"links": links})


@dataclass(frozen=True)
class Arm:
    """A policy with options."""

    title: str
    policy: str
    kind: str = EXACT
    options: Mapping[str, Any] = field(default_factory=dict)
    unfused: bool = False
    start_up_share: float = 1.0  # of each message, of what an all-reduce has

    def made(self) -> Policy:
        return UnfusedWfbp() if self.unfused else policies.get(self.policy)


# Four bytes each: a partition of 1,000,000 parameters, a credit of 4,000,000.
_PUBLISHED_SIZES = {"tune": False, "partition_bytes": 4_000_000, "credit_bytes": 16_000_000}
_DELAYED = {"max_delay": 1, "max_merge": 4}

ARMS: Mapping[str, Arm] = MappingProxyType(
    {
        "stock": Arm("stock Horovod", "stock"),
        "wfbp": Arm("WFBP, nothing fused", "wfbp", unfused=True),
        "bucket": Arm("bucket", "bucket"),
        "ddp": Arm("DDP", "ddp"),
        "mgwfbp": Arm("MG-WFBP", "mgwfbp"),
        "priority": Arm("priority", "priority"),
        "p3": Arm("P3", "p3"),
        "bytescheduler": Arm("ByteScheduler, tuned", "bytescheduler"),
        "bytescheduler_sizes": Arm(
            "ByteScheduler, published sizes", "bytescheduler", options=_PUBLISHED_SIZES
        ),
        "usbyte": Arm("US-Byte", "usbyte"),
        "dear": Arm("DeAR, whole start-ups", "dear"),
        # A reduce-scatter and an all-gather have half the rounds of an all-reduce each.
        "dear_half": Arm("DeAR, half start-ups", "dear", start_up_share=0.5),
        "dcredit": Arm("D-Credit", "dcredit"),
        "least_stale": Arm("least_stale, exact", "least_stale"),
        "sapipe": Arm("SAPipe, uncorrected", "sapipe", LATE),
        "least_stale_late": Arm("least_stale, late", "least_stale", LATE, _DELAYED),
        "deft": Arm("deft", "deft", LATE),
        "covap": Arm("COVAP", "covap", LOSSY),
    }
)


def known_arms() -> dict[str, Arm]:
    """Those whose policy there is."""
    registered = policies.registry()
    return {name: arm for name, arm in ARMS.items() if arm.policy in registered}


@dataclass(frozen=True)
class Job:
    """A model on one GPU."""

    name: str
    title: str
    workload: Workload
    forward_us: float
    backward_us: float

    @property
    def compute_us(self) -> float:
        return self.forward_us + self.backward_us


@dataclass(frozen=True)
class Network:
    """A number of ranks, and what a message between `measured_ranks` of them costs."""

    name: str
    title: str
    ranks: int
    cost: LinkCost
    measured_ranks: int = 0  # 0: all
    round_us: float = 0.0  # of each further round of the ring

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.ranks, latency_us=self.round_us)

    def with_start_up(self, share: float) -> Network:
        """The same one with messages that take this share of the time to start."""
        alpha_us = share * self.cost.alpha_us
        cost = LinkCost(alpha_us=alpha_us, beta_us_per_byte=self.cost.beta_us_per_byte)
        return replace(self, cost=cost, round_us=share * self.round_us)


def request(job: Job, network: Network, options: Mapping[str, Any]) -> Request:
    """The job as a perfect profiler would see it on as many ranks as the links were measured on."""
    whole = sum(layer.work for layer in job.workload.layers)
    parameters: list[Parameter] = []
    use_us: list[float] = []
    ready_us: list[float] = []
    done = 0.0
    for layer in job.workload.layers:
        for tensor in layer.tensors:
            name = f"{layer.name}.{tensor.name}"
            parameters.append(Parameter(name, tensor.elements, "float32", "float32", "cuda"))
            use_us.append(done / whole * job.forward_us)
            ready_us.append((1.0 - done / whole) * job.backward_us)
        done += layer.work
    profile = Profile(
        ready_order=tuple(sorted(range(len(ready_us)), key=lambda i: (ready_us[i], -i))),
        ready_us=tuple(ready_us),
        first_use_us=tuple(use_us),
        forward_us=job.forward_us,
        backward_us=job.backward_us,
        steps=10,
        size=network.measured_ranks or network.ranks,
        links=Profile.link_of(network.cost),
    )
    return Request(tuple(parameters), profile, Config.model_validate(dict(options)))


def cost_there(job: Job, network: Network) -> LinkCost:
    """Of a message between all ranks."""
    found = on_cluster(request(job, network, {}).profile, network.cluster).link
    if found is None:
        raise ValueError(f"the links of {network.name} have no cost")
    return found


def cell(job: Job, network: Network, arms: Mapping[str, Arm]) -> dict[str, Any]:
    """What every arm does with a job on a network."""
    cost = cost_there(job, network)
    whole_us = cost.beta_us_per_byte * job.workload.size_bytes
    scenarios: dict[tuple[str, float], Scenario] = {}
    found = {}
    floor_us = 0.0
    for name, arm in arms.items():
        key = (str(sorted(arm.options.items())), arm.start_up_share)
        if key not in scenarios:
            there = network.with_start_up(arm.start_up_share)
            scenarios[key] = Scenario(request(job, there, arm.options), network.cluster)
        outlook = scenarios[key].outlook(arm.made())
        found[name] = _rounded(outlook)
        if arm.kind == EXACT and arm.start_up_share == 1.0:
            floor_us = outlook.floor_us
    return {
        "model": job.name,
        "network": network.name,
        "ranks": network.ranks,
        "compute_ms": round(job.compute_us / 1e3, 3),
        "alpha_us": round(cost.alpha_us, 3),
        "beta_us_per_mb": round(cost.beta_us_per_byte * 1e6, 3),
        # Of all gradients as one message, start-up not counted, over computing.
        "ccr": round(whole_us / job.compute_us, 4),
        "exact_floor_ms": round(floor_us / 1e3, 3),
        "arms": found,
    }


def _rounded(outlook: Outlook) -> dict[str, float]:
    return {
        "step_ms": round(outlook.step_us / 1e3, 3),
        "staleness_steps": round(outlook.staleness_steps, 3),
        "updates_per_step": round(outlook.updates_per_step, 3),
    }


def cells(
    jobs: Sequence[Job], networks: Sequence[Network], arms: Mapping[str, Arm]
) -> Iterator[dict[str, Any]]:
    for network in networks:
        for job in jobs:
            yield cell(job, network, arms)


def gain(found: Mapping[str, Any], arm: str, rival: str) -> float | None:
    """How many times as fast an arm is as a rival; None where one of them is missing."""
    arms = found["arms"]
    if arm not in arms or rival not in arms:
        return None
    fast_ms, slow_ms = arms[arm]["step_ms"], arms[rival]["step_ms"]
    return float(slow_ms) / float(fast_ms)
