"""How fast the device encodes and decodes wire formats, beside the memory's own rate.

Rates count the bytes read and the bytes written. Buffers take turns, so that they do not stay in
the cache.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
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

    @property
    def moved_bytes(self) -> int:
        """At least, by each work."""
        return self.values.nbytes + self.data.nbytes


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
    sets = gpu_pack.sets_of(lambda: Buffers(name, elements, device), device)
    kinds = works(name)
    arms = {kind: gpu_pack.in_turn(sets, work) for kind, (_, work) in kinds.items()}
    times = gpu_clock.interleaved(arms, device, rounds, wanted_us=5_000)
    message_bytes, value_bytes = sets[0].data.nbytes, sets[0].values.nbytes
    return {
        kind: round((message_bytes + floats * value_bytes) / times[kind]["median"] / 1e3, 1)
        for kind, (floats, _) in kinds.items()
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
    options = gpu_pack.parse(__doc__, arguments)
    torch.set_num_threads(1)
    found = measure(options.device, options.small, options.rounds)
    gpu_results.report(headline(found), **found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
