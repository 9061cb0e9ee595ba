"""How long messages take in each wire format, and in fp32 and fp16. Needs root and iproute2.

On the emulated cluster (scripts/cluster/cluster.py) the same values travel in turns

  fp32   as an all-reduce of Horovod
  fp16   cast, as an all-reduce of Horovod, and cast back: what Compression.fp16 does
  else   over the encoded link (docs/internals/encoded-link.md), with error feedback

one message at a time, and ratios to fp32 are taken round by round. Encoding, decoding and casting
are part of each time. The relative error is that of the latest round's average.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from scripts.benchmarks import cluster as bench
from scripts.cluster import cluster, jobs
from scripts.places import ROOT

FORMATS: Final = ("f16", "bf16", "e4m3", "int8", "int4")
ARMS: Final = ("fp32", "fp16", *FORMATS)
PAGE: Final = ROOT / "docs" / "studies" / "benchmarks" / "encoded.md"
_COMMAND: Final = "sudo .venv/bin/python -m scripts.benchmarks.encoded"
_LIMIT_S: Final = 480.0  # for a job
_WAIT_S: Final = 60.0

_HEAD: Final = """\
# Messages in wire formats

The time of one message and its ratio to Horovod's all-reduce in fp32: median of {rounds} rounds
(smallest .. largest), links of {rate} Mbit/s. Formats take turns. fp16 is what Compression.fp16
does; all others travel over the [encoded link](../../internals/encoded-link.md). Encoding, decoding
and casting are part of each time. The error is |average - exact|^2 / |exact|^2.

```bash
{command}
```
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1.0, 4.0, 16.0])
    parser.add_argument("--rate", type=int, default=500, help="Mbit/s")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args(arguments)


# --- on each rank --------------------------------------------------------------------------------
def senders(elements: int, ranks: int, values: Any) -> dict[str, Callable[[], Any]]:
    """Each sends the values once, and returns their average over ranks."""
    import torch

    from deft_horovod.runtime.extension import native

    link = native.HorovodLink(average=True)
    out, half = torch.empty(elements), torch.empty(elements, dtype=torch.float16)

    def arrived(ticket: native.Ticket, what: str) -> None:
        if reason := ticket.wait(_WAIT_S):
            raise RuntimeError(f"{what} of {elements} elements: {reason}")

    def plain() -> Any:
        arrived(link.send(f"fp32.{elements}", "all_reduce", values, out), "fp32")
        return out

    def cast() -> Any:
        half.copy_(values)
        arrived(link.send(f"fp16.{elements}", "all_reduce", half, half), "fp16")
        return out.copy_(half)

    def encoded(name: str) -> Callable[[], Any]:
        place = f"{name}.{elements}"
        encodings = {place: native.Encoding(name, elements)}
        inner = native.HorovodLink(average=False)
        fewer = native.EncodedLink(inner, ranks, 1 / ranks, encodings)

        def send() -> Any:
            arrived(fewer.send(place, "all_reduce", values, out), name)
            return out

        return send

    return {"fp32": plain, "fp16": cast, **{name: encoded(name) for name in FORMATS}}


def worker(options: Mapping[str, Any]) -> None:
    import horovod.torch as stock
    import torch

    stock.init()
    torch.set_num_threads(1)
    found = []
    for megabytes in options["megabytes"]:
        elements = int(megabytes * 1e6 / 4)
        values = torch.randn(elements, generator=torch.Generator().manual_seed(stock.rank()))
        exact = stock.allreduce(values.double(), name=f"exact.{elements}")
        send = senders(elements, stock.size(), values)
        times: dict[str, list[float]] = {name: [] for name in ARMS}
        errors: dict[str, float] = {}
        for number in range(1 + options["rounds"]):
            for name in ARMS[number % len(ARMS) :] + ARMS[: number % len(ARMS)]:
                stock.barrier()
                began_s = time.perf_counter()
                average = send[name]()
                took_ms = 1e3 * (time.perf_counter() - began_s)
                if number:  # Horovod has met the names of the first round for the first time
                    times[name].append(took_ms)
                errors[name] = float((average - exact).square().sum() / exact.square().sum())
        found.append({"megabytes": megabytes, "times": times, "errors": errors})
    of_ranks = stock.allgather_object(found)
    if stock.rank() == 0:
        Path(options["output"]).write_text(json.dumps(slowest(of_ranks)), encoding="utf-8")


# --- the report ----------------------------------------------------------------------------------
Found = Mapping[str, Any]  # of one size: megabytes, times by arm, errors by arm


def slowest(of_ranks: Sequence[Sequence[Found]]) -> list[Found]:
    """A message has arrived when all ranks have it."""
    return [
        {
            **same[0],
            "times": {
                name: [max(row) for row in zip(*(one["times"][name] for one in same), strict=True)]
                for name in ARMS
            },
        }
        for same in zip(*of_ranks, strict=True)
    ]


def spread(values: Sequence[float], form: str) -> str:
    """The median, and between which values."""
    return f"{median(values):{form}} ({min(values):{form}} .. {max(values):{form}})"


def table(hosts: int, found: Sequence[Found]) -> list[str]:
    """Of one cluster."""
    rows = [f"\n## {hosts} ranks\n", "| MB | format | ms | to fp32 | error |"]
    rows.append("| --- | --- | --- | --- | --- |")
    for one in found:
        plain = one["times"]["fp32"]
        for name in ARMS:
            times = one["times"][name]
            ratios = [mine / theirs for mine, theirs in zip(times, plain, strict=True)]
            size = f"{one['megabytes']:g}" if name == ARMS[0] else ""
            cells = (size, name, spread(times, ".1f"), spread(ratios, ".2f"))
            rows.append(f"| {' | '.join(cells)} | {one['errors'][name]:.1e} |")
    return rows


# --- starting it ---------------------------------------------------------------------------------
def run(options: argparse.Namespace, hosts: int, folder: Path) -> list[Found]:
    """One job on the cluster that is up."""
    output = folder / "found.json"
    environment = jobs.environment(
        {**vars(options), "output": str(output)}, bench.clean_environment()
    )
    words, environment = cluster.job(
        hosts, jobs.program("scripts.benchmarks.encoded"), environment, calm=False
    )
    said: list[str] = []
    status = jobs.stream(words, environment, said.append, _LIMIT_S, cluster.clear)
    cluster.clear()
    if status != 0 or not output.is_file():
        raise bench.BenchError(f"the job ended with status {status}:\n{''.join(said[-30:])}")
    found: list[Found] = json.loads(output.read_text(encoding="utf-8"))
    output.unlink()
    return found


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    jobs.exit_on_sigterm()
    command = " ".join([_COMMAND, *arguments])
    said = [_HEAD.format(rounds=options.rounds, rate=options.rate, command=command).rstrip()]
    try:
        for hosts in options.hosts:
            with cluster.standing(hosts, options.rate), tempfile.TemporaryDirectory() as folder:
                said += table(hosts, run(options, hosts, Path(folder)))
            print(*said[-1:], sep="\n", flush=True)
    except (bench.BenchError, cluster.ClusterError) as error:
        print(f"scripts.benchmarks.encoded: {error}", file=sys.stderr)
        return cluster.CANNOT
    PAGE.write_text("\n".join(said) + "\n", encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    given = jobs.given_options()
    if given is None:
        sys.exit(main(sys.argv[1:]))
    worker(given)
