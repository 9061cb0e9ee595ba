"""Side by side on an emulated cluster: stock Horovod, DDP, our policies. Needs root and iproute2.

Layers of real models' sizes sleep for real models' times (scripts/cluster/accelerator.py) on hosts
made of network namespaces (scripts/cluster/cluster.py). All arms take turns inside one job; a job
is run several times. Finished jobs are kept: started again with the same options, it goes on where
it was stopped. The last thing it does is to write docs/studies/benchmarks/NAME.md and NAME.json.

  bench.py --quick                  one model, one ratio, 2 hosts: does everything work?
  bench.py --subset                 a coarse grid
  bench.py                          everything
  bench.py --only-report            write the tables of what is there
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, NoReturn

from scripts.benchmarks import arms as bench_arms
from scripts.benchmarks import report as bench_report
from scripts.benchmarks import rivals as bench_rivals
from scripts.cluster import cluster, jobs, workloads
from scripts.places import ROOT

RIVALS = ("alone", *bench_rivals.EXACT, *bench_rivals.INEXACT, "priority", *bench_rivals.OURS)
ARMS = ("alone", "stock", "ddp", "bucket", "priority", "deft", "least_stale", "sync")
CCRS = (0.25, 0.5, 1.0, 2.0, 4.0)
# Of Horovod's own settings: share of the model that is fused at most (None: as it comes, 128 MB),
# milliseconds of a cycle. With the default (None, 1 ms) two by two.
GRID: tuple[tuple[float | None, float], ...] = ((0.125, 1.0), (None, 3.5), (0.125, 3.5))
GRID_SECONDS = 4
CACHE_CAPACITY = 16384  # names
REPORTS = ROOT / "docs" / "studies" / "benchmarks"
PORT = 29500  # where torch.distributed meets


class BenchError(RuntimeError):
    """The message says what to do."""


@dataclass(frozen=True)
class Job:
    """One process run."""

    path: Path
    options: dict[str, Any]  # of its ranks
    horovod: dict[str, str]  # variables

    @property
    def title(self) -> str:
        o = self.options
        what = ", ".join(
            f"{k.removeprefix('HOROVOD_').lower()} {v}" for k, v in self.horovod.items()
        )
        name = f"{o['profile']}, {o['hosts']} hosts, CCR {o['ccr']:g}"
        return f"{name}, " + (f"stock with {what}" if what else f"run {o['run'] + 1}")

    def done(self) -> bool:
        """Whether its result is there, and is one of this very job."""
        if not self.path.is_file():
            return False
        there = json.loads(self.path.read_text(encoding="utf-8"))["options"]
        here = json.loads(json.dumps(self.options))
        for key in (*here, *there):
            if key != "output" and there.get(key) != here.get(key):
                raise BenchError(
                    f"{self.path.name} was measured with {key} = {there.get(key)}, now it is "
                    f"{here.get(key)}: give another --name, or --fresh to begin anew"
                )
        return True


# --- what to run ---------------------------------------------------------------------------------
def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_points(parser)
    add_places(parser)
    options = parser.parse_args(arguments)
    abbreviate(options)
    if options.host_list:
        options.hosts = [sum(slots(options.host_list, parser.error))]
        if options.second_rate:
            parser.error("--second-rate is a matter of the emulated cluster")
    options.arms = options.arms or [*ARMS, *(bench_report.TWO_LINKS if options.second_rate else ())]
    options.folder = options.folder or ROOT / "build" / "bench" / options.name
    unknown = set(options.profiles) - set(workloads.WORKLOADS)
    if unknown:
        parser.error(
            f"no such profile: {', '.join(unknown)}; known: {', '.join(workloads.WORKLOADS)}"
        )
    return options


def add_points(parser: argparse.ArgumentParser) -> None:
    """What is measured."""
    parser.add_argument("--profiles", nargs="+", default=[*workloads.WORKLOADS])
    parser.add_argument(
        "--ccr", type=float, nargs="+", default=[*CCRS], help="see docs/studies/benchmarks"
    )
    parser.add_argument("--runs", type=int, default=3, help="process runs of each point")
    parser.add_argument("--arms", nargs="+", choices=[*bench_arms.KINDS], help="default: all")
    parser.add_argument("--compute-ms", type=float, default=200.0, help="of a step")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a run; one round at least")
    parser.add_argument("--rounds", type=int, default=3, help="of all arms in a run, at most")
    parser.add_argument("--no-grid", action="store_true", help="stock Horovod as it comes only")
    parser.add_argument(
        "--config",
        action="extend",
        nargs="+",
        default=[],
        metavar="ARM.OPTION=VALUE",
        help="options of deft_horovod, such as deft.max_merge=2",
    )
    parser.add_argument("--subset", action="store_true", help="CCR 0.5, 1, 2 only, one run of each")
    parser.add_argument(
        "--rivals",
        action="store_true",
        help="all published schedulers, CCR 0.5, 1, 2, longer runs; report: rivals",
    )
    parser.add_argument("--quick", action="store_true", help="vgg19, CCR 1, 2 hosts, one short run")


def add_places(parser: argparse.ArgumentParser) -> None:
    """Where it runs, and where results go."""
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rate", type=int, default=500, help="of each link, Mbit/s")
    parser.add_argument("--second-rate", type=int, help="of a second link; adds arms that use it")
    parser.add_argument(
        "-H",
        "--host-list",
        help="run on these hosts (horovodrun's a:1,b:1) instead of an emulated cluster; --rate is "
        "then what their links carry, and only sets how large the models are",
    )
    parser.add_argument("--interface", default="eth0", help="network interface of the hosts")
    parser.add_argument("--name", default="cluster", help="of the report")
    parser.add_argument(
        "--folder", type=Path, help="of the finished runs; default: build/bench/NAME"
    )
    parser.add_argument("--report", type=Path, default=REPORTS, help="folder of the two files")
    parser.add_argument("--fresh", action="store_true", help="forget finished runs")
    parser.add_argument("--only-report", action="store_true", help="run nothing")


def abbreviate(options: argparse.Namespace) -> None:
    """What one word stands for."""
    if options.rivals:
        options.ccr = [0.5, 1.0, 2.0] if options.ccr == [*CCRS] else options.ccr
        options.seconds, options.no_grid = 40.0, True
        options.name = "rivals" if options.name == "cluster" else options.name
        options.arms = options.arms or [*RIVALS]
    if options.subset:
        options.ccr, options.runs = [0.5, 1.0, 2.0], 1
    if options.quick:
        options.hosts, options.profiles, options.ccr, options.runs = [2], ["vgg19"], [1.0], 1
        options.rounds, options.seconds, options.no_grid = 1, 20.0, True


def slots(host_list: str, fail: Callable[[str], NoReturn]) -> list[int]:
    """Of each host."""
    found = []
    for entry in host_list.split(","):
        host, _, count = entry.partition(":")
        if not host or not count.isdecimal() or int(count) < 1:
            fail(f"-H {host_list}: write it as host:slots,host:slots")
        found.append(int(count))
    return found


def overrides(settings: list[str]) -> dict[str, dict[str, str]]:
    """{"deft": {"max_merge": "2"}} of "deft.max_merge=2"."""
    made: dict[str, dict[str, str]] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        arm, _, option = name.partition(".")
        if arm not in bench_arms.KINDS or not option or not value:
            raise BenchError(f"--config {setting}: write it as ARM.OPTION=VALUE")
        made.setdefault(arm, {})[option] = value
    return made


def plan(options: argparse.Namespace) -> list[Job]:
    """All jobs; the first runs of all points come first, so that a part is worth something."""
    common = {
        "rate_mbit": options.rate,
        "second_rate_mbit": options.second_rate,
        "compute_ms": options.compute_ms,
        "meeting": f"{meeting_host(options.host_list)}:{PORT}",
        "interface": options.interface,
        "host_list": options.host_list,
    }
    config = overrides(options.config)
    points = [
        {**common, "hosts": hosts, "profile": profile, "ccr": ccr}
        for hosts in options.hosts
        for profile in options.profiles
        for ccr in options.ccr
    ]
    made = []
    for run in range(options.runs):
        for point in points:
            name = f"{point['profile']}-n{point['hosts']}-ccr{point['ccr']:g}"
            limits = {"run": run, "seconds": options.seconds, "rounds": options.rounds}
            given = {**point, **limits, "arms": options.arms, "config": config}
            made.append(job(options.folder / f"{name}-run{run + 1}.json", given, {}))
            if run == 0 and not options.no_grid:
                made += [*grid(options.folder / name, point)]
    return made


def meeting_host(host_list: str | None) -> str:
    """Of torch.distributed: the first rank's."""
    return host_list.partition(":")[0] if host_list else f"{cluster.NETWORKS[0]}1"


def job(path: Path, given: dict[str, Any], horovod: dict[str, str]) -> Job:
    return Job(path, {**given, "output": str(path.resolve())}, horovod)


def grid_variables(share: float | None, cycle_ms: float, size_bytes: float) -> dict[str, str]:
    """What Horovod is told; `size_bytes`: of the model."""
    variables = {"HOROVOD_CYCLE_TIME": f"{cycle_ms:g}"}
    if share is not None:
        variables["HOROVOD_FUSION_THRESHOLD"] = str(int(size_bytes * share))
    return variables


def grid(stem: Path, point: dict[str, Any]) -> Iterator[Job]:
    """Stock Horovod with other settings; each needs a job of its own."""
    size_bytes = workloads.gradient_bytes(
        point["hosts"], point["rate_mbit"], point["ccr"], point["compute_ms"] / 1e3
    )
    limits = {"run": 0, "seconds": GRID_SECONDS, "rounds": 3, "arms": ["stock"], "config": {}}
    for share, cycle_ms in GRID:
        settings = {"fusion_share": share, "cycle_ms": cycle_ms}
        variables = grid_variables(share, cycle_ms, size_bytes)
        name = f"{stem.name}-fusion{share or 'default'}-cycle{cycle_ms:g}.json"
        yield job(stem.with_name(name), {**point, **limits, **settings}, variables)


# --- running it ----------------------------------------------------------------------------------
def clean_environment() -> dict[str, str]:
    """Nothing of the caller's settings changes what is measured, nor are modules compiled anew.

    All arms share Horovod's response cache. Its default holds one of them; when it overflows it
    forgets what is in use.
    """
    settings = "HOROVOD_", "DEFT_", "PYTHONDONTWRITEBYTECODE"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(settings)}
    return {**kept, "HOROVOD_CACHE_CAPACITY": str(CACHE_CAPACITY)}


def run(job: Job) -> str | None:
    """What went wrong, if anything."""
    return run_ranks(job, "scripts.benchmarks.cluster_ranks", 4 * job.options["seconds"] + 90)


def run_ranks(job: Job, program: str, limit_s: float) -> str | None:
    """A program of ours on the cluster that is up, or on the hosts given; what went wrong,
    if anything."""
    given = jobs.environment(job.options, clean_environment(), **job.horovod)
    command = jobs.program(program)
    hosts = job.options["hosts"]
    emulated = not job.options.get("host_list")
    if emulated:
        words, environment = cluster.job(hosts, command, given, calm=True, urgent=True)
    else:
        words, environment = jobs.horovodrun(hosts, command, job.options["host_list"]), given
    log = job.path.with_suffix(".log")
    with log.open("w", encoding="utf-8") as lines:
        end = cluster.clear if emulated else None
        status = jobs.stream(words, environment, lines.write, limit_s, end)
    if emulated:
        cluster.clear()  # a rank that outlives its job would disturb the next one
    if status == 0 and job.path.is_file():
        log.unlink()
        return None
    return f"ended with status {status}; see {log}"


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def left_s(waiting: list[Job], took: list[tuple[Job, float]]) -> float:
    """From what jobs of the same kind took."""

    def expected_s(job: Job) -> float:
        alike = [s for other, s in took if bool(other.horovod) == bool(job.horovod)]
        same = [
            s
            for other, s in took
            if other.options["ccr"] == job.options["ccr"]
            and bool(other.horovod) == bool(job.horovod)
        ]
        return float(mean(same or alike or [job.options["seconds"] + 8]))

    return sum(expected_s(job) for job in waiting)


def run_all(waiting: list[Job], all_jobs: int) -> list[str]:
    """What went wrong."""
    problems: list[str] = []
    took: list[tuple[Job, float]] = []
    while waiting:
        left = minutes(left_s(waiting, took))
        head = waiting.pop(0)
        number = all_jobs - len(waiting)
        print(f"[{number}/{all_jobs}, {left} left] {head.title}: ", end="", flush=True)
        began_s = time.monotonic()
        problem = run(head)
        took.append((head, time.monotonic() - began_s))
        if problem is None:
            print(bench_report.one_line(json.loads(head.path.read_text(encoding="utf-8"))))
        else:
            print(f"FAILED: {problem}")
            problems.append(f"{head.title}: {problem}")
            if not head.options["host_list"] and not cluster.host_count():
                raise BenchError("the cluster was taken down meanwhile")
    return problems


def measure(options: argparse.Namespace, all_jobs: list[Job]) -> list[str]:
    options.folder.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in all_jobs if not job.done()]
    if not waiting:
        return []
    if len(waiting) < len(all_jobs):
        there = len(all_jobs) - len(waiting)
        print(f"benchmarks.cluster: {there} of {len(all_jobs)} runs are there already")
    if options.host_list:
        return run_all(waiting, len(all_jobs))
    with cluster.standing(max(options.hosts), options.rate, options.second_rate):
        return run_all(waiting, len(all_jobs))


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    jobs.exit_on_sigterm()
    if options.fresh:
        shutil.rmtree(options.folder, ignore_errors=True)
    try:
        all_jobs = plan(options)
        problems = [] if options.only_report else measure(options, all_jobs)
        done = [json.loads(job.path.read_text(encoding="utf-8")) for job in all_jobs if job.done()]
    except (BenchError, cluster.ClusterError) as error:
        print(f"benchmarks.cluster: {error}", file=sys.stderr)
        return cluster.CANNOT
    except KeyboardInterrupt:
        print("\nbenchmarks.cluster: stopped; the same command goes on from here")
        return 130
    if not done:
        print("benchmarks.cluster: nothing was measured", file=sys.stderr)
        return 1
    words = [word for word in arguments if word not in ("--fresh", "--only-report")]
    command = shlex.join(["sudo", ".venv/bin/python", "-m", "scripts.benchmarks.cluster", *words])
    path = bench_report.write(done, options.name, command, options.report)
    print(f"benchmarks.cluster: wrote {path}")
    for problem in problems:
        print(f"benchmarks.cluster: FAILED: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
