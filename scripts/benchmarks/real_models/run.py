"""Models that really compute, on hosts with slow links. Needs root and iproute2.

Arms with a copy of the model each take turns in one job on network namespaces
(scripts/cluster/cluster.py): without communication, stock Horovod, the same with Compression.fp16,
torch's DistributedDataParallel over Gloo, without and with its fp16 hook, `auto` as it is and with
other accuracies. The learning rate is constant, so nothing of `auto` is late unless
accuracy is `fast`. Ratios to stock are taken round by round. Links are as slow as the ratio of
communication to computing says, for the computing that a first job measures. With --tune, further
jobs run stock Horovod with other settings of its own. Writes a page.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, Final

from scripts.benchmarks import cluster as bench
from scripts.benchmarks.real_models.models import MODELS
from scripts.benchmarks.real_models.tables import (
    ALONE,
    Found,
    cpu_table,
    table,
    tuning_table,
)
from scripts.benchmarks.report import setting_text
from scripts.cluster import cluster, jobs
from scripts.places import ROOT

ARMS: Final = (
    *(ALONE, "stock", "stock + fp16", "DDP", "DDP + fp16", "auto", "auto, exact", "auto, fast"),
)
PAGE: Final = ROOT / "docs" / "studies" / "benchmarks" / "real-models.md"
_COMMAND: Final = "sudo .venv/bin/python -m scripts.benchmarks.real_models.run"
_LIMIT_S: Final = 1500.0
_UNLIMITED_MBIT: Final = 10_000  # of the first job, which hardly sends anything

_HEAD: Final = """\
# Real models with real computing

{hosts} ranks with one thread each on this machine's cores, AdamW with a constant rate, real text
(windows of {length} bytes) or photographs (32 x 32 pixels), batch {batch} on each rank. The link is
as slow as the ratio of communication to computing (CCR) says. Times are the median of {rounds}
rounds of {steps} steps (smallest .. largest); arms take turns, ratios are taken round by round. The
loss is that of held-out samples after about the same number of steps (arms settle at different
times): no study of accuracy, but what is broken would show. `gpt` is our own, the others are
architectures of the package transformers with random weights. What is predicted is the step of the
plan that runs, for a profile that was taken beside it; behind it, how far that is off.

CPU time is that of rank 0: who started the threads that took it, in user mode, and what all of them
took in the kernel. What sends for a rank shares the core on which it computes.

```bash
{command}
```
"""


@dataclass(frozen=True)
class Cell:
    """What is measured in one job."""

    model: str
    rate_mbit: int
    ccr: float | None = None  # None: the rate was given

    @property
    def title(self) -> str:
        rate = f"{self.rate_mbit} Mbit/s"
        return f"{self.model}, " + (rate if self.ccr is None else f"CCR {self.ccr:g} ({rate})")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--models", choices=MODELS, nargs="+", default=[*MODELS])
    parser.add_argument("--ccr", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--rate-mbit", type=int, nargs="+", help="of each link, instead of a ratio")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=3e-4, help="learning rate")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=4, help="of a turn")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=[*ARMS])
    parser.add_argument("--tune", action="store_true", help="also stock with other settings")
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args(arguments)


def slowest(of_ranks: Sequence[Found]) -> dict[str, dict[str, Any]]:
    """A turn is over when it is over on all ranks."""
    first = of_ranks[0]
    return {
        name: {
            **first[name],
            "times_ms": [
                max(times)
                for times in zip(*(found[name]["times_ms"] for found in of_ranks), strict=True)
            ],
        }
        for name in first
    }


def run(
    options: argparse.Namespace,
    model: str,
    folder: Path,
    variables: Mapping[str, str] = MappingProxyType({}),
    **changes: Any,
) -> Found:
    """One job on the cluster that stands. `variables`: settings of Horovod."""
    output = folder / "found.json"
    output.unlink(missing_ok=True)
    meeting = f"{bench.meeting_host(None)}:{bench.PORT}"
    told = {"model": model, "output": str(output), "page": "", "meeting": meeting}
    given = {**vars(options), **told, **changes}
    environment = {**jobs.environment(given, bench.clean_environment()), **variables}
    words, environment = cluster.job(
        options.hosts, jobs.program("scripts.benchmarks.real_models.run"), environment, calm=False
    )
    said: list[str] = []
    status = jobs.stream(words, environment, said.append, _LIMIT_S, cluster.clear)
    cluster.clear()
    if status != 0 or not output.is_file():
        raise bench.BenchError(f"the job ended with status {status}:\n{''.join(said[-30:])}")
    return slowest(json.loads(output.read_text(encoding="utf-8")))


def cells(options: argparse.Namespace, model: str, folder: Path) -> list[Cell]:
    """The rates of the links follow from what computing takes."""
    if options.rate_mbit:
        return [Cell(model, rate) for rate in options.rate_mbit]
    with cluster.standing(options.hosts, _UNLIMITED_MBIT):
        found = run(options, model, folder, arms=[ALONE], rounds=3)[ALONE]
    computing_s = 1e-3 * median(found["times_ms"])
    # What a rank sends of each byte in a ring.
    sent_bits = 8.0 * found["bytes"] * 2.0 * (options.hosts - 1) / options.hosts
    return [
        Cell(model, max(1, round(sent_bits / (ccr * computing_s) / 1e6)), ccr)
        for ccr in options.ccr
    ]


def tuned(options: argparse.Namespace, model: str, folder: Path, size_bytes: float) -> list[str]:
    """Stock Horovod with each setting of the grid, beside computing alone in the same job."""
    found = {}
    for share, cycle_ms in ((None, 1.0), *bench.GRID):
        title = setting_text({"fusion_share": share, "cycle_ms": cycle_ms})
        variables = bench.grid_variables(share, cycle_ms, size_bytes)
        found[title] = run(options, model, folder, variables, arms=[ALONE, "stock"])
    return tuning_table(found)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    jobs.exit_on_sigterm()
    command = f"{_COMMAND} {shlex.join(arguments)}".rstrip()
    lines = [_HEAD.format(**vars(options), command=command).rstrip()]
    try:
        with tempfile.TemporaryDirectory() as kept:
            for model in options.models:
                for cell in cells(options, model, Path(kept)):
                    with cluster.standing(options.hosts, cell.rate_mbit):
                        found = run(options, model, Path(kept))
                        shown = [f"\n## {cell.title}\n", *table(found), "", *cpu_table(found)]
                        if options.tune:
                            size_bytes = next(iter(found.values()))["bytes"]
                            shown += ["", *tuned(options, model, Path(kept), size_bytes)]
                    print(*shown, sep="\n", flush=True)
                    lines += shown
    except (bench.BenchError, cluster.ClusterError) as error:
        print(f"scripts.benchmarks.real_models.run: {error}", file=sys.stderr)
        return cluster.CANNOT
    options.page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote {options.page}")
    return 0


if __name__ == "__main__":
    told = jobs.given_options()
    if told is None:
        sys.exit(main(sys.argv[1:]))
    from scripts.benchmarks.real_models import ranks

    ranks.run(told)
