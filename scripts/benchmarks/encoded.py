"""How long messages take in each wire format, and in fp32 and fp16. Needs root and iproute2.

On the emulated cluster (scripts/cluster/cluster.py) the same values travel in turns

  fp32   as an all-reduce of Horovod
  fp16   cast, as an all-reduce of Horovod, and cast back: what Compression.fp16 does
  else   over the encoded link (docs/internals/encoded-link.md) and a mesh, with error feedback;
         "int8, no mesh" by Horovod's exchanges

one message at a time, and ratios to fp32 are taken round by round. Encoding, decoding and casting
are part of each time. The relative error is that of the latest round's average.

The same rounds have ways to exchange the bytes of int8 alone, without encoding:

  all-gather       one, of all bytes of a rank
  pieces           all-gathers of 512 KiB each, handed over at once
  all-to-all       of two ranks: each sends the other what it has
  reduce-scatter   of two ranks: each adds zeros to what the other has
  sum              of two ranks: an all-reduce modulo 256, less what this rank has
  two stages       an all-to-all of a chunk for each rank, and an all-gather of chunks
  mesh             over a mesh: of two ranks one all-gather, of more the two stages
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

from deft_horovod.base.wire_format import SECOND_STAGE_BYTES, WireFormat
from scripts.benchmarks import cluster as bench
from scripts.cluster import cluster, jobs
from scripts.places import ROOT

FORMATS: Final[tuple[WireFormat, ...]] = ("f16", "bf16", "e4m3", "int8", "int4")
NO_MESH: Final = "int8, no mesh"
ARMS: Final = ("fp32", "fp16", *FORMATS, NO_MESH)
PIECE_BYTES: Final = 512 * 1024
PAGE: Final = ROOT / "docs" / "studies" / "benchmarks" / "encoded.md"
_COMMAND: Final = "sudo .venv/bin/python -m scripts.benchmarks.encoded"
_LIMIT_S: Final = 480.0  # for a job
_WAIT_S: Final = 60.0
_PAIR: Final = 2

_HEAD: Final = """\
# Messages in wire formats

The time of one message and its ratio to Horovod's all-reduce in fp32: median of {rounds} rounds
(smallest .. largest), links of {rate} Mbit/s. Formats take turns. fp16 is what Compression.fp16
does; all others travel over the [encoded link](../../internals/encoded-link.md). Encoding, decoding
and casting are part of each time. All but "int8, no mesh" go over a mesh, and that one by Horovod's
exchanges. The error is |average - exact|^2 / |exact|^2.

The second table of each cluster has ways to exchange the bytes of int8 alone, without encoding, in
the same rounds: `python -m scripts.benchmarks.encoded --help` says what they are.

```bash
{command}
```
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--ranks-per-host", type=int, default=1, help="if more, no page is written")
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1.0, 4.0, 16.0])
    parser.add_argument("--rate", type=int, default=500, help="Mbit/s")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args(arguments)


# --- on each rank --------------------------------------------------------------------------------
def arrived(ticket: Any, what: str) -> None:
    if reason := ticket.wait(_WAIT_S):
        raise RuntimeError(f"{what}: {reason}")


def opened_mesh() -> Any:
    import horovod.torch as stock

    from deft_horovod.runtime.links.mesh import open_mesh_beside_horovod
    from deft_horovod.runtime.ranks.agreement import Agreement
    from deft_horovod.runtime.ranks.reduction import Reduction

    everyone = stock.global_process_set
    reduction = Reduction(stock.Average, stock.Compression.none, 1.0, False, everyone)
    mesh = open_mesh_beside_horovod(reduction, _WAIT_S, Agreement(everyone, _WAIT_S))
    if mesh is None:
        raise RuntimeError("the ranks cannot make a mesh")
    return mesh


def senders(
    elements: int, size: int, rank: int, values: Any, mesh: Any
) -> dict[str, Callable[[], Any]]:
    """Each sends the values once, and returns their average over ranks."""
    import torch

    from deft_horovod.plan.formats import owners
    from deft_horovod.runtime.extension import native

    link = native.HorovodLink(average=True)
    out, half = torch.empty(elements), torch.empty(elements, dtype=torch.float16)

    def plain() -> Any:
        arrived(link.send(f"fp32.{elements}", "all_reduce", values, out), "fp32")
        return out

    def cast() -> Any:
        half.copy_(values)
        arrived(link.send(f"fp16.{elements}", "all_reduce", half, half), "fp16")
        return out.copy_(half)

    def encoded(name: WireFormat, over: Any = mesh) -> Callable[[], Any]:
        place = f"{name}.{elements}.{over is not None}"
        shares = owners(name, elements, size, SECOND_STAGE_BYTES)
        encoding = native.Encoding(name, elements, (), shares, rank if shares > 1 else 0)
        inner = native.HorovodLink(average=False)
        fewer = native.EncodedLink(inner, size, rank, 1 / size, {place: encoding}, mesh=over)

        def send() -> Any:
            arrived(fewer.send(place, "all_reduce", values, out), name)
            return out

        return send

    each: dict[str, Callable[[], Any]] = {name: encoded(name) for name in FORMATS}
    return {"fp32": plain, "fp16": cast, **each, NO_MESH: encoded("int8", None)}


def exchanges(elements: int, size: int, rank: int) -> dict[str, Callable[[], None]]:
    """Each brings the bytes of all ranks to all ranks, or those of sums of the same size."""
    import torch

    from deft_horovod.runtime.extension import native

    link = native.HorovodLink(average=False)
    count = (native.wire_encoded_bytes("int8", elements) + 7) // 8 * 8
    mine = torch.zeros(count, dtype=torch.uint8)
    every = torch.empty(size * count, dtype=torch.uint8)
    of_other = torch.empty(count // 8, dtype=torch.int64)

    def gather() -> None:
        arrived(link.send(f"gather.{count}", "all_gather", mine, every), "all-gather")

    def pieces() -> None:
        tickets = []
        for begin in range(0, count, PIECE_BYTES):
            end = min(begin + PIECE_BYTES, count)
            into = every[size * begin : size * end]
            name = f"piece.{count}.{begin}"
            tickets.append(link.send(name, "all_gather", mine[begin:end], into))
        for ticket in tickets:
            arrived(ticket, "pieces")

    def swap() -> None:
        only_other = [0 if r == rank else count for r in range(size)]
        ticket = link.send(
            f"swap.{count}", "all_to_all", mine, every[:count], 0, only_other, only_other
        )
        arrived(ticket, "all-to-all")

    def add_zeros() -> None:
        both = every.view(torch.int64)
        both.chunk(2)[rank].zero_()
        both.chunk(2)[1 - rank].copy_(mine.view(torch.int64))
        arrived(link.send(f"add.{count}", "reduce_scatter", both, of_other), "reduce-scatter")

    def add_up() -> None:
        other = every[:count]
        arrived(link.send(f"sum.{count}", "all_reduce", mine, other), "sum")
        other.sub_(mine)

    found = {"all-gather": gather, "pieces": pieces}
    if size == _PAIR:
        found |= {"all-to-all": swap, "reduce-scatter": add_zeros, "sum": add_up}
    return found


def stages(elements: int, size: int, rank: int, mesh: Any) -> dict[str, Callable[[], None]]:
    """The same, where each rank adds up a part."""
    import torch

    from deft_horovod.runtime.extension import native

    count = (native.wire_encoded_bytes("int8", elements) + 7) // 8 * 8
    mine = torch.zeros(count, dtype=torch.uint8)
    every = torch.empty(size * count, dtype=torch.uint8)
    chunks = [count * (r + 1) // size - count * r // size for r in range(size)]
    received = torch.empty(size * chunks[rank], dtype=torch.uint8)

    def two_stages(link: Any) -> None:
        of_all = [chunks[rank]] * size
        first = link.send(f"chunks.{count}", "all_to_all", mine, received, 0, chunks, of_all, 0)
        arrived(first, "all-to-all")
        own, into = received[: chunks[rank]], every[:count]
        second = link.send(f"sums.{count}", "all_gather", own, into, 0, (), chunks, 1)
        arrived(second, "all-gather")

    def over_mesh() -> None:
        if size > _PAIR:
            two_stages(mesh)
        else:
            arrived(mesh.send("gather", "all_gather", mine, every, tag=2), "mesh")

    by_horovod = native.HorovodLink(average=False)
    return {"two stages": lambda: two_stages(by_horovod), "mesh": over_mesh}


def worker(options: Mapping[str, Any]) -> None:
    import horovod.torch as stock
    import torch

    stock.init()
    torch.set_num_threads(1)
    size, rank, mesh, found = stock.size(), stock.rank(), opened_mesh(), []
    for megabytes in options["megabytes"]:
        elements = int(megabytes * 1e6 / 4)
        values = torch.randn(elements, generator=torch.Generator().manual_seed(rank))
        exact = stock.allreduce(values.double(), name=f"exact.{elements}")
        send: dict[str, Callable[[], Any]] = {
            **senders(elements, size, rank, values, mesh),
            **exchanges(elements, size, rank),
            **stages(elements, size, rank, mesh),
        }
        names = list(send)
        times: dict[str, list[float]] = {name: [] for name in names}
        errors: dict[str, float] = {}
        for number in range(1 + options["rounds"]):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                stock.barrier()
                began_s = time.perf_counter()
                average = send[name]()
                took_ms = 1e3 * (time.perf_counter() - began_s)
                if number:  # Horovod has met the names of the first round for the first time
                    times[name].append(took_ms)
                if average is not None:
                    errors[name] = float((average - exact).square().sum() / exact.square().sum())
        found.append({"megabytes": megabytes, "times": times, "errors": errors})
    of_ranks = stock.allgather_object(found)
    if rank == 0:
        Path(options["output"]).write_text(json.dumps(slowest(of_ranks)), encoding="utf-8")


# --- the report ----------------------------------------------------------------------------------
Found = Mapping[str, Any]  # of one size: megabytes, times by arm, errors by format


def slowest(of_ranks: Sequence[Sequence[Found]]) -> list[Found]:
    """A message has arrived when all ranks have it."""
    return [
        {
            **same[0],
            "times": {
                name: [max(row) for row in zip(*(one["times"][name] for one in same), strict=True)]
                for name in same[0]["times"]
            },
        }
        for same in zip(*of_ranks, strict=True)
    ]


def spread(values: Sequence[float], form: str) -> str:
    """The median, and between which values."""
    return f"{median(values):{form}} ({min(values):{form}} .. {max(values):{form}})"


def table(ranks: str, found: Sequence[Found]) -> list[str]:
    """Of one cluster: formats, then exchanges."""
    formats = ["| MB | format | ms | to fp32 | error |", "| --- | --- | --- | --- | --- |"]
    ways = ["| MB | exchange of int8's bytes | ms | to fp32 |", "| --- | --- | --- | --- |"]
    for one in found:
        plain = one["times"]["fp32"]
        for name, times in one["times"].items():
            ratios = [mine / theirs for mine, theirs in zip(times, plain, strict=True)]
            row = f"| {one['megabytes']:g} | {name} | {spread(times, '.1f')} "
            row += f"| {spread(ratios, '.2f')} |"
            if name in one["errors"]:
                formats.append(f"{row} {one['errors'][name]:.1e} |")
            else:
                ways.append(row)
    return [f"\n## {ranks}\n", *formats, "", *ways]


def ranks_text(hosts: int, ranks_per_host: int) -> str:
    """How many there are, and where."""
    if ranks_per_host == 1:
        return f"{hosts} ranks"
    return f"{hosts * ranks_per_host} ranks, {ranks_per_host} on each host"


# --- starting it ---------------------------------------------------------------------------------
def run(options: argparse.Namespace, hosts: int, folder: Path) -> list[Found]:
    """One job on the cluster that is up."""
    output = folder / "found.json"
    environment = jobs.environment(
        {**vars(options), "output": str(output)}, bench.clean_environment()
    )
    words, environment = cluster.job(
        hosts,
        jobs.program("scripts.benchmarks.encoded"),
        environment,
        ranks_per_host=options.ranks_per_host,
        calm=False,
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
                found = run(options, hosts, Path(folder))
            rows = table(ranks_text(hosts, options.ranks_per_host), found)
            print(*rows, sep="\n", flush=True)
            said += rows
    except (bench.BenchError, cluster.ClusterError) as error:
        print(f"scripts.benchmarks.encoded: {error}", file=sys.stderr)
        return cluster.CANNOT
    if options.ranks_per_host > 1:
        return 0  # the page is about one rank on each host
    PAGE.write_text("\n".join(said) + "\n", encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    given = jobs.given_options()
    if given is None:
        sys.exit(main(sys.argv[1:]))
    worker(given)
