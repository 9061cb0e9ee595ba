"""How long does real training take to a given loss, over a slow link? Needs root and iproute2.

Two hosts made of network namespaces train a transformer on characters; layers take as long as they
would on an accelerator (scripts/benchmarks/target/ranks.py). Stock Horovod sets the target: its
final validation loss, and 1 %. With a constant rate ours may train beyond stock's last step: a loss
that jumps there delays it, and does not hide when it gets to the target. Finished trainings are
kept: started again, it goes on where it was stopped. It ends by writing
docs/studies/benchmarks/NAME.md, NAME.json and NAME.png.

  python -m scripts.benchmarks.target.run                    everything: about two hours
  python -m scripts.benchmarks.target.run --seeds 1 --ccr 1  a first look
  python -m scripts.benchmarks.target.run --only-report      write the tables of what is there
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from scripts.benchmarks import cluster as bench
from scripts.benchmarks.target import ranks as target_ranks
from scripts.benchmarks.target import report as target_report
from scripts.cluster import cluster, jobs, workloads
from scripts.cluster.restless import restless
from scripts.places import ROOT

HOSTS: Final = 2
STEPS, EVERY = 500, 25  # of a training; from one evaluation to the next
LIMIT_S: Final = 400.0  # of so many steps
ARMS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "stock": {"stock": True, "compression": "none"},
        "fp16": {"stock": True, "compression": "fp16"},
        "exact": {"stock": False, "config": {"accuracy": "exact"}},
        "auto": {"stock": False, "config": {}},
        "fast": {"stock": False, "config": {"accuracy": "fast"}},
    }
)


def rate_mbit(compute_ms: float, ccr: float) -> int:
    """Of links on which the gradients take `ccr` times as long as computing."""
    size_bytes = 4 * sum(p.numel() for p in target_ranks.model().parameters())
    carried = workloads.gradient_bytes(HOSTS, 1, ccr, compute_ms / 1e3)  # at 1 Mbit/s
    return max(1, round(size_bytes / carried))


def plan(options: argparse.Namespace) -> list[bench.Job]:
    """Seed by seed, so that a part is worth something."""
    made = []
    for seed in options.seeds:
        for ccr in options.ccr:
            for name in options.arms:
                path = options.folder / f"{name}-ccr{ccr:g}-seed{seed}.json"
                beyond = 0 if ARMS[name]["stock"] else options.beyond
                given = {
                    "seed": seed,
                    "ccr": ccr,
                    "name": name,
                    "arm": dict(ARMS[name]),
                    "optimizer": options.optimizer,
                    "lr": options.lr,
                    "schedule": options.schedule,
                    "compute_ms": options.compute_ms,
                    "steps": options.steps + beyond,
                    "every": EVERY,
                    "hosts": HOSTS,
                    "rate_mbit": rate_mbit(options.compute_ms, ccr),
                    "restless_s": options.restless,
                }
                made.append(bench.job(path, given, {}))
    return made


def run_all(waiting: list[bench.Job]) -> list[str]:
    problems = []
    with cluster.standing(HOSTS, waiting[0].options["rate_mbit"]), cluster.short_turns():
        for number, job in enumerate(waiting, 1):
            cluster.change_rate(job.options["rate_mbit"])
            what = f"{job.options['name']}, CCR {job.options['ccr']:g}, seed {job.options['seed']}"
            print(f"[{number}/{len(waiting)}] {what}: ", end="", flush=True)
            limit_s = LIMIT_S * max(1.0, job.options["steps"] / STEPS)
            with _link_of(job):
                problem = bench.run_ranks(job, "scripts.benchmarks.target.ranks", limit_s)
            if problem is None:
                _, seconds, loss = json.loads(job.path.read_text("utf-8"))["curve"][-1]
                print(f"loss {loss:.3f} after {seconds:.0f} s")
            else:
                said = refused(job.path.with_suffix(".log")) or problem
                print(f"FAILED: {said}")
                problems.append(f"{what}: {said}")
    return problems


def _link_of(job: bench.Job) -> contextlib.AbstractContextManager[None]:
    rate, period_s = job.options["rate_mbit"], job.options["restless_s"]
    return restless(rate, period_s) if period_s else contextlib.nullcontext()


def refused(log: Path) -> str | None:
    """Why a training that ended does not count, if it says so."""
    mark = "benchmarks.target.ranks: "
    lines = log.read_text("utf-8").splitlines() if log.is_file() else []
    return next((line.partition(mark)[2] for line in lines if mark in line), None)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--ccr", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    parser.add_argument("--arms", nargs="+", choices=[*ARMS], default=[*ARMS])
    parser.add_argument("--optimizer", choices=["sgd", "adam", "adamw"], default="adamw")
    parser.add_argument("--lr", type=float, default=0.005)
    parser.add_argument("--schedule", choices=["cosine", "constant"], default="cosine")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--beyond", type=int, default=0, help="so many steps more, for ours")
    parser.add_argument("--compute-ms", type=float, default=80.0, help="of a step")
    parser.add_argument("--restless", type=float, help="seconds until the rate halves, or is back")
    parser.add_argument("--name", default="target", help="of the report")
    parser.add_argument("--folder", type=Path, help="of the finished trainings")
    parser.add_argument("--report", type=Path, default=bench.REPORTS, help="folder of the report")
    parser.add_argument("--only-report", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    if options.beyond and options.schedule == "cosine":
        parser.error("--beyond needs --schedule constant: a cosine ends with the training")
    options.folder = options.folder or ROOT / "build" / "bench" / options.name
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    jobs.exit_on_sigterm()
    options.folder.mkdir(parents=True, exist_ok=True)
    problems: list[str] = []
    try:
        all_jobs = plan(options)
        waiting = [] if options.only_report else [job for job in all_jobs if not job.done()]
        problems = run_all(waiting) if waiting else []
        done = [json.loads(job.path.read_text("utf-8")) for job in all_jobs if job.done()]
    except (bench.BenchError, cluster.ClusterError) as error:
        print(f"benchmarks.target.run: {error}", file=sys.stderr)
        return cluster.CANNOT
    except KeyboardInterrupt:
        print("\nbenchmarks.target.run: stopped; the same command goes on from here")
        return 130
    if not done:
        print("benchmarks.target.run: nothing was measured", file=sys.stderr)
        return 1
    if not any(one["options"]["name"] == "stock" for one in done):
        print("benchmarks.target.run: kept; a report needs stock Horovod, which sets the target")
        return 1 if problems else 0
    words = [word for word in arguments if word != "--only-report"]
    command = shlex.join(
        ["sudo", ".venv/bin/python", "-m", "scripts.benchmarks.target.run", *words]
    )
    path = target_report.write(done, options.name, command, options.report)
    print(f"benchmarks.target.run: wrote {path}")
    for problem in problems:
        print(f"benchmarks.target.run: FAILED: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
