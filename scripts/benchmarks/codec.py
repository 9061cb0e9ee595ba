"""How fast values become messages and back: GB/s of fp32, on one core.

Each format and each implementation encodes with a rest and without, decodes, and decodes on top of
what is there, in turns with a plain copy of the same values (`memcpy`). Processor time of the
thread is counted, so other work on the machine takes bandwidth at most. Buffers exist before, and
a call from Python is part of each number.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import torch

from deft_horovod.runtime.extension import native
from scripts.places import ROOT

LIMIT_GBPS: Final = 3.0
FORMATS: Final = ("f32", "f16", "bf16", "e4m3", "int8", "int4")
SIZES: Final = (64 << 10, 1 << 20, 25 << 20)
TASKS: Final = ("encode with rest", "encode", "decode", "decode and add")
PAGE: Final = ROOT / "docs" / "studies" / "benchmarks" / "codec.md"
_SAMPLE_S: Final = 0.01
_COMMAND: Final = "python -m scripts.benchmarks.codec"

_HEAD: Final = """\
# How fast the wire formats are

Values become messages, and messages values, on one core. Each number is GB of fp32 values a
second, the median of {rounds} turns (smallest .. largest).
[wire-codec.md](../../internals/wire-codec.md) says what formats and kinds are.

```bash
{command}
```

{machine}. Processor time of one thread is counted. Formats, kinds and a plain
copy take turns. A call from Python, {overhead_us:.1f} microseconds, is part of each number. Other
work ran on the machine.

The slowest of each kind:
"""


@dataclass(frozen=True, order=True)
class Arm:
    """What takes its turn."""

    format: str
    kind: str
    task: str


COPY: Final = Arm("", "", "memcpy")
Rates = Mapping[Arm, Sequence[float]]  # GB/s, one for each round


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="bytes of fp32")
    parser.add_argument("--formats", nargs="*", default=FORMATS, choices=FORMATS)
    kinds = native.wire_kinds()
    parser.add_argument("--kinds", nargs="*", default=kinds[1:], choices=kinds)
    parser.add_argument("--page", type=Path, help=f"write the report, as {PAGE.name} is one")
    parser.add_argument("--strict", action="store_true", help="fail when the limit is missed")
    return parser.parse_args(arguments)


def calls(arm: Arm, values: torch.Tensor) -> Callable[[], object]:
    """What an arm does again and again, with memory of its own."""
    out = torch.zeros_like(values)
    if arm == COPY:
        return partial(out.copy_, values)
    message = native.wire_encode(arm.format, values)
    if arm.task == "decode":
        elements = values.numel()
        return partial(native.wire_decode, arm.format, message, elements, arm.kind, out)
    if arm.task == "decode and add":
        return partial(native.wire_decode_add, arm.format, message, out, arm.kind)
    rest = torch.zeros_like(values) if arm.task == "encode with rest" else None
    return partial(native.wire_encode, arm.format, values, rest, arm.kind, message)


def seconds(call: Callable[[], object], times: int) -> float:
    """Processor time of one call."""
    began = time.thread_time()
    for _ in range(times):
        call()
    return (time.thread_time() - began) / times


def arms_of(options: argparse.Namespace) -> Iterator[Arm]:
    for name in options.formats:
        for kind in options.kinds:
            for task in TASKS:
                yield Arm(name, kind, task)


def measure(options: argparse.Namespace, size_bytes: int) -> Rates:
    """All arms of a size, in turns; a copy before each format."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(max(1, size_bytes // 4), generator=generator) * 1e-3
    rates: dict[Arm, list[float]] = {}
    for _ in range(options.rounds):
        for arm in arms_of(options):
            turns = (COPY, arm) if arm.task == TASKS[0] else (arm,)
            for turn in turns:
                call = calls(turn, values)
                once = max(seconds(call, 1), 1e-7)  # it also warms memory and caches
                taken = seconds(call, max(1, round(_SAMPLE_S / once)))
                rates.setdefault(turn, []).append(4 * values.numel() / taken / 1e9)
    return rates


def said(rates: Sequence[float]) -> str:
    return f"{median(rates):.1f} ({min(rates):.1f} .. {max(rates):.1f})"


def table(options: argparse.Namespace, rates: Rates) -> list[str]:
    """Rows of one size."""
    lines = ["| format | kind | " + " | ".join(TASKS) + " |", "| --- | --- |" + " --- |" * 4]
    for name in options.formats:
        for kind in options.kinds:
            cells = [said(rates[Arm(name, kind, task)]) for task in TASKS]
            lines.append(f"| {name} | {kind} | " + " | ".join(cells) + " |")
    return lines


def slowest(rates: Rates, kinds: Sequence[str]) -> tuple[float, Arm]:
    """Of the medians, without f32, which is no codec."""
    chosen = [arm for arm in rates if arm.kind in kinds and arm.format not in {"", "f32"}]
    return min((median(rates[arm]), arm) for arm in chosen)


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "an unknown processor"


def size_text(size_bytes: int) -> str:
    unit = 1 << 20
    return f"{size_bytes / unit:g} MiB" if size_bytes >= unit else f"{size_bytes / 1024:g} KiB"


def verdicts(options: argparse.Namespace, results: Mapping[int, Rates]) -> list[str]:
    """The slowest of each kind, over all sizes."""
    lines = []
    for kind in options.kinds:
        found = [(*slowest(rates, [kind]), size) for size, rates in results.items()]
        rate, arm, size = min(found)
        met = "met" if rate >= LIMIT_GBPS else "missed"
        lines.append(
            f"- {kind}: at least {rate:.2f} GB/s ({arm.task} of {arm.format}, {size_text(size)});"
            f" {LIMIT_GBPS:g} GB/s are {met}."
        )
    return lines


def page(options: argparse.Namespace, results: Mapping[int, Rates]) -> str:
    empty = torch.empty(0)
    overhead_us = 1e6 * seconds(partial(native.wire_encode, "int8", empty), 10_000)
    lines = [
        _HEAD.format(
            rounds=options.rounds,
            command=f"{_COMMAND} --page {PAGE.relative_to(ROOT)}",
            machine=f"{processor()}, torch {torch.__version__}",
            overhead_us=overhead_us,
        ),
        *verdicts(options, results),
    ]
    for size, rates in results.items():
        lines += ["", f"## {size_text(size)}", ""]
        lines += [f"A copy of the values (`memcpy`): {said(rates[COPY])}.", ""]
        lines += table(options, rates)
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    torch.set_num_threads(1)
    results = {size: measure(options, size) for size in options.sizes}
    text = page(options, results)
    print(text)
    if options.page:
        options.page.write_text(text, encoding="utf-8")
    best = options.kinds[-1:]
    rate = min(slowest(rates, best)[0] for rates in results.values())
    return 1 if options.strict and rate < LIMIT_GBPS else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
