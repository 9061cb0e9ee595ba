"""How fast the device encodes and decodes wire formats, beside the memory's own rate.

Rates count the bytes read and the bytes written. Buffers take turns, so that they do not stay in
the cache.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from scripts.gpu import results as gpu_results
from scripts.gpu.measure import clock as gpu_clock
from scripts.gpu.measure import pack as gpu_pack

FORMATS = ("f16", "bf16", "e4m3", "int8", "int4")
MEGABYTES = (1, 4, 16, 64, 256)  # of values in fp32
LARGE_MEGABYTES = 64  # from here on a launch and filling the device no longer count
WANTED = 0.6  # of a plain copy's rate, for large messages
VALUE_BYTES = 4


class Buffers:
    """Of one message: values, what rounding leaves, the bytes that travel."""

    def __init__(self, name: str, elements: int, device: str) -> None:
        from deft_horovod.runtime.extension import native

        self.values = torch.randn(elements, device=device)
        self.rest = torch.zeros_like(self.values)
        self.data = native.wire_encode(name, self.values)
        self.out = torch.zeros_like(self.values)


def works(name: str) -> dict[str, tuple[int, Callable[[Buffers], Any]]]:
    """Each with the floats that it reads and writes per value, beside the message."""
    from deft_horovod.runtime.extension import native

    def decode(b: Buffers) -> Any:
        return native.wire_decode(name, b.data, b.values.numel(), out=b.out)

    return {
        "encode": (1, lambda b: native.wire_encode(name, b.values, out=b.data)),
        "encode with rest": (3, lambda b: native.wire_encode(name, b.values, b.rest, out=b.data)),
        "decode": (1, decode),
        "decode and add": (2, lambda b: native.wire_decode_add(name, b.data, b.out)),
    }


def rates_gb_s(name: str, elements: int, device: str, rounds: int) -> dict[str, float]:
    first = Buffers(name, elements, device)
    one_bytes = first.data.nbytes + VALUE_BYTES * elements
    more = 0 if device == "cpu" else min(gpu_pack.MOST_SETS, gpu_pack.UNCACHED_BYTES // one_bytes)
    sets = [first, *(Buffers(name, elements, device) for _ in range(more))]
    arms: dict[str, Callable[[], Any]] = {}
    for kind, (_, work) in works(name).items():
        turn: Iterator[Buffers] = itertools.cycle(sets)
        arms[kind] = lambda t=turn, w=work: w(next(t))  # type: ignore[misc]
    times = gpu_clock.interleaved(arms, device, rounds, wanted_us=5_000)
    return {
        kind: round((first.data.nbytes + floats * VALUE_BYTES * elements) / us / 1e3, 1)
        for kind, (floats, _) in works(name).items()
        for us in [times[kind]["median"]]
    }


def measure(device: str, small: bool, rounds: int) -> dict[str, Any]:
    found: dict[str, Any] = {"formats": {}}
    found["ceiling_gb_s"] = gpu_pack.ceiling_gb_s(device, (8 if small else 4096) << 20, rounds)
    for size, name in itertools.product((1,) if small else MEGABYTES, FORMATS):
        rates = rates_gb_s(name, (size << 20) // VALUE_BYTES, device, rounds)
        found["formats"].setdefault(name, {})[str(size)] = rates
    return found


def slowest(found: dict[str, Any]) -> tuple[float, str]:
    """Of large messages, as a share of a copy's rate; infinite where none was measured."""
    shares = [
        (rate / found["ceiling_gb_s"], f"{name} {kind} of {size} MB")
        for name, sizes in found["formats"].items()
        for size, rates in sizes.items()
        if int(size) >= LARGE_MEGABYTES
        for kind, rate in rates.items()
    ]
    return min(shares, default=(float("inf"), "nothing large"))


def headline(found: dict[str, Any]) -> str:
    share, name = slowest(found)
    if share == float("inf"):
        return "a dry run: no message was large enough to judge"
    verdict = "met" if share >= WANTED else "MISSED"
    return (
        f"a copy moves {found['ceiling_gb_s']:.0f} GB/s; slowest of large messages: {name}, "
        f"{share:.0%} of it; target of {WANTED:.0%}: {verdict}"
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--small", action="store_true", help="one small size, for a dry run")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found = measure(options.device, options.small, options.rounds)
    gpu_results.report(headline(found), **found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
