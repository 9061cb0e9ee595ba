"""Is what `auto` calls stock no slower than stock Horovod? Needs root and iproute2.

On the emulated cluster (scripts/cluster/cluster.py) three arms take turns inside one job, block by
block, each with its own copy of the same model (scripts/cluster/accelerator.py):

  plain  horovod.torch.DistributedOptimizer, nothing of ours
  stock  our optimizer with policy "stock"
  auto   a new optimizer with policy "auto" in each block, until it has tried stock: the step time
         of its profile, and the one that its log compares itself with

It is done with ranks as they come and with ranks at real-time priority; there also calmed
(scripts/cluster/calm.c), so that stock Horovod sleeps too while it waits. Ratios to `plain` are
taken round by round.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, Final

from scripts.benchmarks import arms as bench_arms
from scripts.benchmarks import cluster as bench
from scripts.benchmarks import cluster_ranks as bench_ranks
from scripts.cluster import cluster, jobs, workloads

LIMIT: Final = 1.03  # of the ratio to stock Horovod
SERIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "plain": "stock Horovod",
        "stock": "policy `stock`",
        "profile": "`auto`: its profile",
        "trial": "`auto`: its trial of stock",
    }
)
_BEGINNING_STEPS: Final = 2  # of a block, not counted: the link is still empty
_LIMIT_S: Final = 480.0  # for a job
_MOST_STEPS: Final = 100  # until `auto` has tried stock


@dataclass(frozen=True)
class Condition:
    """How the ranks run."""

    title: str
    urgent: bool = False
    calm: bool = False


CONDITIONS: Final[Mapping[str, Condition]] = MappingProxyType(
    {
        "normal": Condition("as they come"),
        "urgent": Condition("real-time priority", urgent=True),
        "calm": Condition("real-time priority, calmed", urgent=True, calm=True),
    }
)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", choices=[*workloads.WORKLOADS], default="vgg19")
    parser.add_argument("--ccr", type=float, default=1.0)
    parser.add_argument("--compute-ms", type=float, default=200.0, help="of a step")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rate", type=int, default=500, help="Mbit/s")
    parser.add_argument("--blocks", type=int, default=6, help="of each arm")
    parser.add_argument("--steps", type=int, default=8, help="of a block")
    parser.add_argument("--conditions", nargs="+", choices=[*CONDITIONS], default=[*CONDITIONS])
    parser.add_argument("--strict", action="store_true", help="fail when the target is missed")
    return parser.parse_args(arguments)


# --- on each rank --------------------------------------------------------------------------------
def block_ms(arm: bench_arms.Arm, steps: int) -> dict[str, float]:
    """Median over the steps of a block."""
    for _ in range(_BEGINNING_STEPS):
        arm.step()
    times = []
    for _ in range(steps):
        began_s = time.perf_counter()
        arm.step()
        times.append(1e3 * (time.perf_counter() - began_s))
    return {arm.name: median(times)}


def ours(policy: str, options: Mapping[str, Any]) -> bench_arms.Arm:
    """A model of its own with our optimizer."""
    import deft_horovod.torch as hvd
    from scripts.cluster import accelerator

    model = accelerator.SleepingModel(
        bench_ranks.workload_of(dict(options)), options["compute_ms"] / 1e3
    )
    steps = options["steps"]
    config = {"profile_warmup_steps": 1, "profile_steps": steps, "probe_s": 0.3, "warmup_steps": 0}
    config |= {"trial_steps": steps, "trial_rounds": 1, "deadline_s": 60.0}
    optimizer = hvd.DistributedOptimizer(
        accelerator.DeviceSgd(model.parameters(), lr=1.0),
        model.named_parameters(),
        policy=policy,
        config=config,
    )
    return bench_arms.Arm(policy, bench_arms.KINDS["stock"], model, model, optimizer)


def auto_ms(options: Mapping[str, Any]) -> dict[str, float]:
    """What `auto` takes stock Horovod for."""
    arm = ours("auto", options)
    optimizer = arm.optimizer
    for _ in range(_MOST_STEPS):
        arm.step()
        trials_us = optimizer.stats()["trials_us"]
        if "stock" in trials_us:
            optimizer.flush()
            return {"profile": optimizer.profile.step_us / 1e3, "trial": trials_us["stock"] / 1e3}
    raise RuntimeError(f"auto has not tried stock within {_MOST_STEPS} steps")


def worker(options: dict[str, Any]) -> None:
    import horovod.torch as stock
    import torch

    import deft_horovod.torch as hvd

    torch.set_num_threads(1)
    hvd.init()
    workload = bench_ranks.workload_of(options)
    plain = bench_arms.make("stock", workload, options["compute_ms"] / 1e3, {})
    plain.name = "plain"
    arms = {arm.name: arm for arm in (plain, ours("stock", options))}
    measures: dict[str, Callable[[], dict[str, float]]] = {
        name: functools.partial(block_ms, arm, options["steps"]) for name, arm in arms.items()
    }
    measures["auto"] = functools.partial(auto_ms, options)
    for arm in arms.values():
        arm.warm_up()
    gc.collect()
    gc.freeze()
    rounds = []
    for number in range(options["blocks"]):
        found: dict[str, float] = {}
        names = [*measures]
        for name in names[number % len(names) :] + names[: number % len(names)]:
            stock.barrier()
            for arm in arms.values():
                arm.model.clock.restart()
            found |= measures[name]()
        rounds.append(found)
    of_ranks = stock.allgather_object(rounds)
    if stock.rank() == 0:
        Path(options["output"]).write_text(json.dumps(slowest(of_ranks)), encoding="utf-8")


# --- the report ----------------------------------------------------------------------------------
Rounds = Sequence[Mapping[str, float]]  # of each round the times of all series


def slowest(of_ranks: Sequence[Rounds]) -> list[dict[str, float]]:
    """A step is as slow as its slowest rank."""
    return [
        {name: max(rank[name] for rank in ranks) for name in ranks[0]}
        for ranks in zip(*of_ranks, strict=True)
    ]


def ratios(rounds: Rounds, name: str) -> list[float]:
    """Of a series to plain stock Horovod, round by round."""
    return [found[name] / found["plain"] for found in rounds]


def flatters(rounds: Rounds) -> bool:
    """Whether something that we call stock is slower than stock Horovod: then what is compared with
    it looks too good."""
    return any(median(ratios(rounds, name)) > LIMIT for name in SERIES)


def lines(condition: Condition, rounds: Rounds) -> list[str]:
    """Rows of a table: step time, and ratio with its spread."""
    rows = []
    for name, title in SERIES.items():
        times = [found[name] for found in rounds]
        of_plain = ratios(rounds, name)
        rows.append(
            f"| {condition.title} | {title} | {spread(times, '.1f')} | {spread(of_plain, '.3f')} |"
        )
    return rows


def spread(values: Sequence[float], form: str) -> str:
    return f"{median(values):{form}} ({min(values):{form}} .. {max(values):{form}})"


HEAD: Final = ("| ranks | what | step, ms | to stock Horovod |", "| --- | --- | --- | --- |")


# --- starting it ---------------------------------------------------------------------------------
def run(options: argparse.Namespace, condition: Condition, folder: Path) -> list[dict[str, float]]:
    """One job on the cluster that is up."""
    output = folder / "rounds.json"
    given = {**vars(options), "rate_mbit": options.rate, "output": str(output)}
    command = jobs.program("scripts.benchmarks.baseline")
    if condition.urgent and not condition.calm:
        # The cluster refuses it by default: a process that spins at this priority stops all others.
        command = ["chrt", "-r", str(cluster.PRIORITY), *command]
    environment = jobs.environment(given, bench.clean_environment())
    words, environment = cluster.job(
        options.hosts,
        command,
        environment,
        calm=condition.calm,
        urgent=condition.urgent and condition.calm,
    )
    said: list[str] = []
    status = jobs.stream(words, environment, said.append, _LIMIT_S, cluster.clear)
    cluster.clear()
    if status != 0 or not output.is_file():
        raise bench.BenchError(f"the job ended with status {status}:\n{''.join(said[-30:])}")
    rounds: list[dict[str, float]] = json.loads(output.read_text(encoding="utf-8"))
    output.unlink()
    return rounds


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    jobs.exit_on_sigterm()
    flattered = []
    try:
        with cluster.standing(options.hosts, options.rate), tempfile.TemporaryDirectory() as folder:
            print(*HEAD, sep="\n", flush=True)
            for name in options.conditions:
                rounds = run(options, CONDITIONS[name], Path(folder))
                print(*lines(CONDITIONS[name], rounds), sep="\n", flush=True)
                flattered += [name] * flatters(rounds)
    except (bench.BenchError, cluster.ClusterError) as error:
        print(f"benchmarks.baseline: {error}", file=sys.stderr)
        return cluster.CANNOT
    found = f"MISSED ({', '.join(flattered)})" if flattered else "met"
    print(f"\ntarget: nothing above {LIMIT:g} of stock Horovod: {found}")
    return 1 if options.strict and flattered else 0


if __name__ == "__main__":
    given = jobs.given_options()
    if given is None:
        sys.exit(main(sys.argv[1:]))
    worker(given)
