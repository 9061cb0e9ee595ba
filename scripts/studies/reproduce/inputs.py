"""Jobs and networks of published comparisons, from the figures in the folder `published`.

What is worked out here is noted among the inputs of a report, with its rule.
"""

from __future__ import annotations

from deft_horovod.profile import LinkCost
from deft_horovod.workloads.catalogue import SHAPES
from deft_horovod.workloads.workload import Workload
from scripts.studies.reproduce.facts import ASSUMED, DERIVED, Facts
from scripts.studies.reproduce.reproduction import Job, Network

MILLISECOND_US = 1e3


def arithmetic(workload: Workload) -> float:
    """Multiply-accumulate operations of forward, for one sample (or token)."""
    return sum(layer.work for layer in workload.layers)


def pipedream_ms(facts: Facts, model: str) -> float:
    """A published profile: forward and backward of one sample."""
    name = f"pipedream.{model}"
    return (facts[f"{name}.forward"] + facts[f"{name}.backward"]) / facts[f"{name}.batch"]


def backward_ratio(facts: Facts, like: str) -> float:
    """Backward over forward, in the published profile of that model."""
    return facts[f"pipedream.{like}.backward"] / facts[f"pipedream.{like}.forward"]


def job(
    facts: Facts,
    name: str,
    title: str,
    compute_ms: float,
    ratio: float,
    shape: str = "",
    mark: str = ASSUMED,
) -> Job:
    """`ratio`: backward over forward. It is assumed unless all that it follows from is known."""
    compute_us = compute_ms * MILLISECOND_US
    forward_us = compute_us / (1.0 + ratio)
    note = f"forward {forward_us / 1e3:.1f} ms, backward {(compute_us - forward_us) / 1e3:.1f} ms"
    facts.derive(f"job.{name}", round(compute_ms, 1), "ms", f"of computing a step; {note}", mark)
    return Job(name, title, SHAPES[shape or name](), forward_us, compute_us - forward_us)


def published_rate_job(
    facts: Facts, name: str, title: str, batch: float, ratio: float, shape: str = ""
) -> Job:
    """From what one GPU of the published measurements did in a second."""
    rate = facts[f"ddl.{name}.rate"]
    if batch != facts[f"ddl.{name}.batch"]:
        why = (
            f"measured with batch {facts[f'ddl.{name}.batch']:g}; the rate is taken to be the same"
        )
        facts.assume(f"batch.{name}", batch, "samples", why)
    known = batch == facts[f"ddl.{name}.batch"] and shape in ("", name)
    mark = DERIVED if known else ASSUMED
    return job(facts, name, title, batch / rate * 1e3, ratio, shape, mark)


def ring(
    facts: Facts, name: str, title: str, ranks: int, alpha_us: float, gb_per_s: float
) -> Network:
    """A ring over all ranks whose slowest hop carries so much."""
    beta_us = 2.0 * (ranks - 1) / ranks / (gb_per_s * 1e3)
    facts.derive(
        f"network.{name}.beta",
        round(beta_us, 8),
        "us/byte",
        f"2(n-1)/n of the bytes over {gb_per_s:g} GB/s, n = {ranks}",
    )
    return Network(name, title, ranks, LinkCost(alpha_us=alpha_us, beta_us_per_byte=beta_us))


def nccl_latency_us(facts: Facts, ranks: int, nodes: int, hop: str, large: str) -> float:
    """Of an all-reduce of a large message on a ring, by NCCL's own model."""
    rounds, between = 2 * (ranks - 1), 2 * (nodes - 1)
    inside_us = (rounds - between) * facts[f"nccl.hop.{hop}"]
    latency_us = facts["nccl.base"] + inside_us + between * facts["nccl.hop.net"]
    latency_us *= facts[f"nccl.large.{large}"]
    rule = f"base + {rounds - between} hops inside nodes + {between} between {nodes} nodes"
    return facts.derive(
        f"nccl.latency.{ranks}", round(latency_us, 1), "us", f"{rule}, large factor"
    )


def fitted(facts: Facts, table: str, title: str, ranks: int) -> Network:
    """A published fit for as many ranks."""
    name = f"{table}.{ranks}"
    cost = LinkCost(alpha_us=facts[f"{name}.alpha"], beta_us_per_byte=facts[f"{name}.beta"])
    return Network(name, title, ranks, cost)


def extrapolated(
    facts: Facts,
    table: str,
    title: str,
    fit: tuple[int, int],
    ranks: int,
    per_element: bool = False,
) -> Network:
    """A fit of two published ones, on other ranks: by `fit` = (fewer, more) workers.

    The slowest hop of the ring stays as fast as with more workers, and each further round costs
    what it costs between the two.
    """
    fewer, more = fit
    round_us = (facts[f"{table}.{more}.a"] - facts[f"{table}.{fewer}.a"]) / (2 * (more - fewer))
    beta_us = facts[f"{table}.{more}.b"] / (4 if per_element else 1)
    cost = LinkCost(alpha_us=facts[f"{table}.{more}.a"], beta_us_per_byte=beta_us)
    name = f"{table}.{ranks}" + (".per_element" if per_element else "")
    if ranks != more:
        why = f"of the difference of the fits for {fewer} and {more} workers; all hops alike"
        facts.assume(f"{table}.round", round(round_us, 1), "us", why)
    if per_element:
        facts.assume(f"network.{name}.beta", beta_us, "us/byte", "the fit read as per element")
    return Network(name, title, ranks, cost, more, round_us)
