"""A small GPT that really computes, on hosts with slow links. Needs root and iproute2.

Arms with a copy of the model each take turns in one job on network namespaces
(scripts/cluster/cluster.py): without communication, stock Horovod, the same with Compression.fp16,
`auto` with each accuracy. The learning rate is constant, so nothing of `auto` is late unless
accuracy is `fast`. Ratios to stock are taken round by round. Writes a page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from scripts.benchmarks import cluster as bench
from scripts.benchmarks.encoded import spread
from scripts.cluster import cluster, jobs
from scripts.places import ROOT

ARMS: Final = ("alone", "stock", "stock + fp16", "auto, exact", "auto, equal", "auto, fast")
PAGE: Final = ROOT / "docs" / "studies" / "benchmarks" / "real-models.md"
_COMMAND: Final = "sudo .venv/bin/python -m scripts.benchmarks.real_models.run"
_LIMIT_S: Final = 1500.0

_HEAD: Final = """\
# A real model with real computing

A GPT of {layers} layers, width {width}, on bytes of real text, batch {batch} of {length} bytes on
each rank, AdamW with a constant rate. {hosts} ranks with one thread each on this machine's cores,
links of {links} Mbit/s. Times are the median of {rounds} rounds (smallest .. largest); arms take
turns, ratios are taken round by round. The loss is that of held-out text after about the same
number of steps (arms settle at different times): no study of accuracy, but what is broken would
show.

```bash
{command}
```
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rate-mbit", type=int, nargs="+", default=[300], help="of each link")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=3e-4, help="learning rate")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=4, help="of a turn")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=[*ARMS])
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args(arguments)


Found = Mapping[str, Mapping[str, Any]]  # by arm


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


def table(rate_mbit: int, found: Found) -> list[str]:
    """Of one rate."""
    lines = [
        f"\n## {rate_mbit} Mbit/s\n",
        "| arm | ms a step | of stock | stock / it | loss | what runs |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    stock = found["stock"]["times_ms"] if "stock" in found else None
    for name, one in found.items():
        times = one["times_ms"]
        cells = [name, spread(times, ".0f"), "", "", f"{one['loss']:.3f}", running(one["stats"])]
        if stock is not None:
            cells[2] = spread([t / s for t, s in zip(times, stock, strict=True)], ".2f")
            cells[3] = f"{median(s / t for t, s in zip(times, stock, strict=True)):.2f}"
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def running(stats: Mapping[str, Any]) -> str:
    """The policy, and the share of each format."""
    formats = stats.get("formats") or {}
    total = sum(sizes["bytes"] for sizes in formats.values()) or 1
    parts = [f"{100 * sizes['bytes'] / total:.0f} % {one}" for one, sizes in formats.items()]
    return ", ".join([str(stats.get("running", "")), *parts]).strip(", ")


def run(options: argparse.Namespace, rate_mbit: int, folder: Path) -> dict[str, dict[str, Any]]:
    """One job on a cluster of its own."""
    output = folder / "found.json"
    given = {**vars(options), "output": str(output), "page": str(options.page)}
    environment = jobs.environment(given, bench.clean_environment())
    words, environment = cluster.job(
        options.hosts, jobs.program("scripts.benchmarks.real_models.run"), environment, calm=False
    )
    said: list[str] = []
    status = jobs.stream(words, environment, said.append, _LIMIT_S, cluster.clear)
    cluster.clear()
    if status != 0 or not output.is_file():
        raise bench.BenchError(f"the job ended with status {status}:\n{''.join(said[-30:])}")
    found = slowest(json.loads(output.read_text(encoding="utf-8")))
    print(*table(rate_mbit, found), sep="\n", flush=True)
    return found


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    jobs.exit_on_sigterm()
    links = ", ".join(map(str, options.rate_mbit))
    command = " ".join([_COMMAND, *arguments])
    lines = [_HEAD.format(**vars(options), links=links, command=command).rstrip()]
    try:
        for rate_mbit in options.rate_mbit:
            with cluster.standing(options.hosts, rate_mbit), tempfile.TemporaryDirectory() as kept:
                lines += table(rate_mbit, run(options, rate_mbit, Path(kept)))
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
