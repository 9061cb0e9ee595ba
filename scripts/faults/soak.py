"""20,000 steps of one tiny training on two ranks: resident memory has to stay flat.

  soak.py --policy auto --steps 20000
  soak.py --policy deft --steps 20000     updates one step late, sums of several steps

Memory is read every 500 steps on every rank, from the 2,000th on: what was allocated by then is
what training takes. Growth of more than 6 MB fails, and so do replicas that differ.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.cluster import jobs

RANKS = 2
BEGIN, EVERY = 2000, 500
MOST_GROWTH_BYTES = 6 << 20
LIMIT_S = 1800

Seen = Mapping[str, Any]


def resident_bytes() -> int:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth_bytes(samples: Sequence[tuple[int, int]]) -> int:
    """From the first quarter of the samples (step, bytes) to the last, by their smallest: what is
    only there now and then is no growth."""
    after = [size for step, size in samples if step >= BEGIN]
    quarter = max(1, len(after) // 4)
    return min(after[-quarter:]) - min(after[:quarter])


def trouble(ranks: Sequence[Seen], steps: int) -> list[str]:
    """What is wrong with a soak."""
    wrong = []
    for rank, seen in enumerate(ranks):
        if seen["steps"] != steps:
            wrong.append(f"rank {rank} took {seen['steps']} steps of {steps}")
        grown = growth_bytes(seen["samples"])
        if grown > MOST_GROWTH_BYTES:
            wrong.append(f"rank {rank}: {grown / 1e6:.1f} MB more than after {BEGIN} steps")
        if seen["dropped"]:
            wrong.append(f"rank {rank} dropped {seen['dropped']} gradients")
    if len({seen["digest"] for seen in ranks}) > 1:
        wrong.append("replicas differ")
    return wrong


def line(policy: str, ranks: Sequence[Seen], steps: int) -> str:
    """A row of the report's table."""
    grown = max(growth_bytes(seen["samples"]) for seen in ranks)
    last = max(seen["samples"][-1][1] for seen in ranks)
    late = "yes" if ranks[0]["late"] else "no"
    seconds = max(seen["seconds"] for seen in ranks)
    return (
        f"| {policy} | {steps:,} | {late} | {last / 1e6:.0f} MB | {grown / 1e6:+.1f} MB "
        f"| {seconds:.0f} s |"
    )


# --- on a rank -----------------------------------------------------------------------------------
def on_rank(given: Mapping[str, Any]) -> None:
    """Trains, and leaves what it saw in a file."""
    import hashlib

    import torch

    import deft_horovod.torch as hvd

    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(24, 24) for _ in range(6)))
    inner = torch.optim.AdamW(model.parameters(), lr=1e-3)
    optimizer: Any = hvd.DistributedOptimizer(
        inner, model.named_parameters(), policy=given["policy"], config=given["config"]
    )
    data = torch.Generator().manual_seed(hvd.rank())
    samples, began_s = [], time.monotonic()
    for step in range(given["steps"]):
        inputs = torch.randn(4, 24, generator=data)
        optimizer.zero_grad()
        (model(inputs) - inputs).pow(2).mean().backward()
        optimizer.step()
        if (step + 1) % EVERY == 0:
            samples.append((step + 1, resident_bytes()))
    late = bool(optimizer.stats()["late"])
    optimizer.flush()
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    found = {
        "steps": given["steps"],
        "samples": samples,
        "late": late,
        "dropped": optimizer.stats()["dropped"],
        "digest": hashlib.sha256(flat.numpy().tobytes()).hexdigest(),
        "seconds": time.monotonic() - began_s,
    }
    path = Path(given["folder"]) / f"rank.{hvd.rank()}.json"
    path.write_text(json.dumps(found), encoding="utf-8")


# --- the job -------------------------------------------------------------------------------------
def run(policy: str, steps: int) -> list[Seen]:
    """The soak of one policy, as each rank saw it."""
    config = {"warmup_steps": 20, "bucket_bytes": 4096, "first_bucket_bytes": 2048}
    if policy == "deft":
        config["max_merge"] = 2
    with tempfile.TemporaryDirectory(prefix="deft-soak-") as folder:
        given = {"policy": policy, "steps": steps, "folder": folder, "config": config}
        environment = jobs.environment(given, DEFT_DEADLINE_S="60")
        command = jobs.horovodrun(RANKS, jobs.program("scripts.faults.soak"))
        status = jobs.stream(command, environment, limit_s=LIMIT_S)
        paths = [Path(folder) / f"rank.{rank}.json" for rank in range(RANKS)]
        if status != 0 or not all(path.is_file() for path in paths):
            raise SystemExit(f"the job ended with status {status}")
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def main(arguments: Sequence[str]) -> int:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--policy", nargs="+", default=["auto", "deft"])
    made.add_argument("--steps", type=int, default=20_000)
    options = made.parse_args(arguments)
    failed = 0
    for policy in options.policy:
        ranks = run(policy, options.steps)
        print(line(policy, ranks, options.steps), flush=True)
        for wrong in trouble(ranks, options.steps):
            failed += 1
            print(f"{policy}: {wrong}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    options_given = jobs.given_options()
    if options_given is not None:
        on_rank(options_given)
    else:
        sys.exit(main(sys.argv[1:]))
