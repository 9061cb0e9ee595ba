"""Our optimizer over torch.distributed beside DDP, on the emulated cluster, which needs root.

    sudo .venv/bin/python -m scripts.benchmarks.beside_ddp.run

All arms take turns inside one job. It writes docs/studies/benchmarks/beside-ddp.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from scripts.benchmarks import cluster as bench
from scripts.benchmarks.arms import BUCKETS
from scripts.cluster import cluster, jobs, workloads
from scripts.places import ROOT

PAGE: Final = ROOT / "docs" / "studies" / "benchmarks" / "beside-ddp.md"
FOLDER: Final = ROOT / "build" / "beside_ddp"  # of what jobs say
_COMMAND: Final = "sudo .venv/bin/python -m scripts.benchmarks.beside_ddp.run"
_LIMIT_S: Final = 300.0  # for a job
_TITLES: Final = {
    "ddp": "DDP",
    "ddp_fp16": "DDP, fp16 hook",
    "ddp_powersgd": "DDP, PowerSGD",
    "exact": "ours, `exact`",
    "exact_fp16": "ours, fp16",
    "equal": "ours, `equal`",
    "taken": "its script, `exact`",
    "taken_equal": "its script, `equal`",
}
_HEAD: Final = """\
# Beside DDP

Step time over computing time in jobs of torch.distributed over Gloo, without Horovod; median of
{rounds} rounds in which all arms take turns (smallest .. largest), {hosts} hosts, links of {rate}
Mbit/s, {compute:g} ms of computing in a step. Computing is [emulated](README.md), so the processor
is free for communication. Nothing is late. DDP has {buckets} buckets, scaled as the models are.
PowerSGD sends matrices of rank 4, which it makes on the processor: an accelerator would do so on
its own. It has one bucket: over Gloo its hook hangs with more (torch 2.13). What it costs training
is not measured here; [wire formats](../formats/results.md) has what ours do. "Its script" is one of
DDP that runs unchanged under `python -m deft_horovod --torchrun`: averages are there when backward
ends, as with DDP, so nothing hides behind the next forward.

```bash
{command}
```

| model, CCR | {titles} | DDP over `exact` | DDP over `equal` |
| --- |{rules} --- | --- |
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profiles", nargs="+", default=[*workloads.WORKLOADS])
    parser.add_argument("--ccr", type=float, nargs="+", default=[0.25, 0.5, 1.0, 2.0])
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rate", type=int, default=500, help="Mbit/s")
    parser.add_argument("--compute-ms", type=float, default=200.0, help="of a step")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args(arguments)


def measured(options: argparse.Namespace, profile: str, ccr: float, folder: Path) -> Any:
    """What one job has found."""
    output = folder / f"{profile}-{ccr:g}.json"
    given = {
        "profile": profile,
        "ccr": ccr,
        "hosts": options.hosts,
        "rate_mbit": options.rate,
        "compute_ms": options.compute_ms,
        "rounds": options.rounds,
        "interface": "eth0",
        "meeting": f"{bench.meeting_host(None)}:{bench.PORT}",
        "output": str(output),
    }
    problem = bench.run_ranks(
        bench.Job(output, given, {}), "scripts.benchmarks.beside_ddp.ranks", _LIMIT_S
    )
    if problem is not None:
        raise bench.BenchError(problem)
    return json.loads(output.read_text(encoding="utf-8"))["times_ms"]


def row(title: str, times_ms: Mapping[str, Sequence[float]]) -> str:
    """Ratios are taken round by round."""

    def over(above: str, below: str) -> str:
        pairs = zip(times_ms[above], times_ms[below], strict=True)
        ratios = [a / b for a, b in pairs]
        return f"{median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f})"

    cells = [over(name, "alone") for name in _TITLES]
    cells += [over("ddp", "exact"), over("ddp", "equal")]
    return f"| {title} | {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    jobs.exit_on_sigterm()
    head = _HEAD.format(
        rounds=options.rounds,
        hosts=options.hosts,
        rate=options.rate,
        compute=options.compute_ms,
        buckets=BUCKETS,
        command=" ".join([_COMMAND, *arguments]),
        titles=" | ".join(_TITLES.values()),
        rules=" --- |" * len(_TITLES),
    )
    rows = []
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        with cluster.standing(options.hosts, options.rate):
            for profile in options.profiles:
                for ccr in options.ccr:
                    found = measured(options, profile, ccr, FOLDER)
                    rows.append(row(f"{profile}, {ccr:g}", found))
                    print(rows[-1], flush=True)
    except (bench.BenchError, cluster.ClusterError) as error:
        print(f"benchmarks.beside_ddp: {error}", file=sys.stderr)
        return cluster.CANNOT
    PAGE.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
