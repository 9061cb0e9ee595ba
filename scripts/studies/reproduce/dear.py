"""DeAR's comparison (ICDCS 2023) in the simulator: 64 GPUs, five models, two networks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from deft_horovod.workloads.catalogue import SHAPES
from scripts.studies.reproduce.facts import Facts
from scripts.studies.reproduce.inputs import (
    arithmetic,
    backward_ratio,
    fitted,
    job,
    nccl_latency_us,
    pipedream_ms,
    published_rate_job,
    ring,
)
from scripts.studies.reproduce.reproduction import Job, Network
from scripts.studies.reproduce.script import Cells, Claim, Comparison, main, up_to

RIVALS = {
    "stock": "stock Horovod",
    "ddp": "DDP",
    "mgwfbp": "MG-WFBP",
    "wfbp": "WFBP, nothing fused",
    "bytescheduler": "ByteScheduler",
}
FUSED = ("stock", "ddp", "mgwfbp")
FIGURES = {
    "10gbps.64": ("dear.10gbe", "10 GbE, their fit"),
    "10gbe.line": ("dear.10gbe", "10 GbE, line rate"),
    "56gbps.64": ("dear.100gib", "100 Gb IB, their fit"),
    "100gib.line": ("dear.100gib", "100 Gb IB, line rate"),
}
ETHERNET_GB_PER_S = 1.25


def jobs(facts: Facts) -> list[Job]:
    """Their five, as the benchmark's list of tasks names them."""
    batch = {name: facts[f"dear.{name}.batch"] for name in ("resnet50", "densenet201")}
    ratio = facts["transformer.backward_share"]
    found = [
        published_rate_job(
            facts, "resnet50", "ResNet-50", batch["resnet50"], backward_ratio(facts, "resnet50")
        ),
        _like(facts, "densenet201", "DenseNet-201", "densenet121"),
        _like(facts, "inception_v4", "Inception-v4", "resnet50"),
    ]
    for name, title in (("bert_base", "BERT-base"), ("bert_large", "BERT-large")):
        size = facts[f"dear.{name}.batch"]
        shape = f"{name}_pretraining"
        found.append(published_rate_job(facts, name, title, size, ratio, shape))
    return found


def _like(facts: Facts, name: str, title: str, like: str) -> Job:
    """Without a published time: its arithmetic, at the rate at which a published profile's model
    works, on the GPU of the published measurements."""
    slower = pipedream_ms(facts, like) / pipedream_ms(facts, "resnet50")
    more = arithmetic(SHAPES[name]()) / arithmetic(SHAPES[like]())
    batch = facts[f"dear.{name}.batch"]
    compute_ms = batch / facts["ddl.resnet50.rate"] * 1e3 * slower * more
    why = (
        f"ResNet-50's rate on that GPU; as {like} beside ResNet-50, {more:.2f} times its arithmetic"
    )
    facts.assume(f"time.{name}", round(compute_ms, 1), "ms", why)
    return job(facts, name, title, compute_ms, backward_ratio(facts, like))


def networks(facts: Facts) -> list[Network]:
    ranks = int(facts["dear.gpus"])
    nodes = ranks // int(facts["gpus.node"])
    latency_us = nccl_latency_us(facts, ranks, nodes, "pcie", "older")
    ib = facts["nccl.nic.100gbit"]
    port = ETHERNET_GB_PER_S * facts["tcp.payload"]
    return [
        fitted(facts, "10gbps", "10 GbE, their fit", ranks),
        ring(facts, "10gbe.line", "10 GbE, line rate", ranks, latency_us, port),
        fitted(facts, "56gbps", "100 Gb IB, their fit", ranks),
        ring(facts, "100gib.line", "100 Gb IB, line rate", ranks, latency_us, ib),
    ]


def claims(cells: Cells, facts: Facts) -> list[Claim]:
    found = []
    for network, (figure, link) in FIGURES.items():
        there = [cell for cell in cells if cell["network"] == network]
        if not there:
            continue
        for rival, title in RIVALS.items():
            said = f"{link}: DeAR over the state of the art; here over {title}"
            found.append(up_to(there, "dear_half", rival, facts[figure], said))
        said = f"{link}: as above; here over the best fused one of each model"
        best = [_with_best(cell) for cell in there]
        found.append(up_to(best, "dear_half", "best", facts[figure], said))
    return found


def _with_best(cell: Mapping[str, Any]) -> dict[str, Any]:
    """With the fastest fused rival as an arm of its own."""
    steps = [cell["arms"][name] for name in FUSED if name in cell["arms"]]
    best = {"best": min(steps, key=lambda step: step["step_ms"])} if steps else {}
    return {**cell, "arms": {**cell["arms"], **best}}


INTRO = """\
DeAR (ICDCS 2023) splits each all-reduce into a reduce-scatter behind backward and an all-gather
behind the next forward. Its abstract says: up to 83 % faster on 64 GPUs with 10 GbE, and up to 15
% with 100 Gb InfiniBand, over the state of the art, with five models. Which rival, and which
model, is not in the abstract; its code lists the rivals below.
"""
NOTES = """\
- Our `dear` pays a whole start-up for each half of an all-reduce, as Horovod's negotiation would.
  With half of it for each, which is what a ring's rounds take, it is the row with half start-ups,
  and that one is compared with the headline. Its other rows' messages pay in full.
- Over rivals that fuse nothing (WFBP, ByteScheduler) the gain is start-ups: 161 to 604 tensors
  with several milliseconds each. The published alpha for 64 workers on 10 GbE looks scaled by
  hand, and these rivals pay it for every tensor.
- Over rivals that fuse, 83 % needs that communication and computing take about as long, and that
  the rival hides little: exact plans cannot gain more than that. The table shows how near the
  floor the fused rivals are here; where they are within a few percent of it, no exact plan could
  gain 83 % over them. So the headline hinges on the rival, or on links that are slower beside the
  GPUs than these.
- That DeAR's GPUs compute as fast as the one of ddl-benchmarks is assumed throughout.
  DenseNet-201's and Inception-v4's times are assumed, and BERT-large's rate was measured with
  batch 8 and is used for 32, where a GPU would be more efficient: its CCR would be larger.
"""

COMPARISON = Comparison("dear", "DeAR on 64 GPUs", INTRO, jobs, networks, claims, NOTES)

if __name__ == "__main__":
    sys.exit(main(COMPARISON, sys.argv[1:]))
