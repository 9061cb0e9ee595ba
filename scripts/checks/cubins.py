"""What each CUDA kernel needs of a device, as ptxas tells; a spill to memory is an error.

python -m scripts.checks.cubins [--nvcc NVCC]: compiles the kernels of csrc/cuda for each
architecture and prints one row for each. Ends with 0, with 1 where a kernel spills, with 2 where
nothing could be told.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scripts.places import ROOT

ARCHITECTURES = ("80", "90")
FLAGS = ("-O3", "-std=c++17", "-Werror=all-warnings", "-Xptxas=-v", "-cubin")
ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(sm_\w+)'")
STACK = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
)
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class Kernel:
    """As ptxas compiled it."""

    name: str
    architecture: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spilled_bytes: int  # stores and loads


def parse(text: str) -> list[Kernel]:
    """What `ptxas -v` prints of each kernel."""
    kernels = []
    parts = ENTRY.split(text)  # what stands before the first, then name, architecture, text
    for name, architecture, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        stack, used = STACK.search(body), USED.search(body)
        if stack is None or used is None:
            message = f"ptxas gave no stack or no registers of {name}: {body.strip()}"
            raise ValueError(message)
        frame, stores, loads = map(int, stack.groups())
        kernels.append(
            Kernel(
                name=name,
                architecture=architecture,
                registers=int(used.group(1)),
                shared_bytes=_number(SHARED, body),
                stack_bytes=frame,
                spilled_bytes=stores + loads,
            )
        )
    return kernels


def table(kernels: Iterable[Kernel]) -> str:
    """One row for each kernel."""
    lines = ["arch   registers  shared  stack  spilled  kernel"]
    lines += [
        f"{k.architecture:<6} {k.registers:>9} {k.shared_bytes:>7} {k.stack_bytes:>6}"
        f" {k.spilled_bytes:>8}  {k.name}"
        for k in kernels
    ]
    return "\n".join(lines)


def verdict(kernels: list[Kernel]) -> tuple[int, str]:
    """Status of the process, and why."""
    if not kernels:
        return 2, "cubin report: ptxas named no kernel; expected those of csrc/cuda"
    spilling = [k for k in kernels if k.spilled_bytes > 0]
    if spilling:
        worst = max(spilling, key=lambda kernel: kernel.spilled_bytes)
        return 1, (
            f"cubin report: {len(spilling)} of {len(kernels)} kernels spill, the most"
            f" {worst.spilled_bytes} bytes: {worst.name} ({worst.architecture});"
            " expected none: give it less to hold at once"
        )
    most = max(kernel.registers for kernel in kernels)
    return 0, f"cubin report: {len(kernels)} kernels, no spills, at most {most} registers"


def find_nvcc() -> str | None:
    """Where the build looks for it, too."""
    for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if home and (Path(home) / "bin" / "nvcc").is_file():
            return str(Path(home) / "bin" / "nvcc")
    return shutil.which("nvcc")


def compiled(nvcc: str, source: Path, architecture: str) -> str:
    """What ptxas says of one source."""
    target = f"-arch=sm_{architecture}"
    command = [nvcc, *FLAGS, target, f"-I{ROOT / 'csrc'}", str(source), "-o", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"cubin report: nvcc failed on {source}:\n{done.stderr}")
    return done.stderr


def readable(text: str) -> str:
    """Names as they stand in the source, where binutils are there."""
    if shutil.which("c++filt") is None:
        return text
    done = subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True)
    return done.stdout.replace("(anonymous namespace)::", "").replace("deft_cuda::", "")


def main(arguments: list[str]) -> int:
    """Prints the table; the process's status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nvcc", default=find_nvcc())
    nvcc = parser.parse_args(arguments).nvcc
    if nvcc is None:
        print("cubin report: no nvcc in CUDA_HOME, /usr/local/cuda or PATH", file=sys.stderr)
        return 2
    sources = sorted((ROOT / "csrc" / "cuda").rglob("*.cu"))
    kernels = [
        kernel
        for source in sources
        for architecture in ARCHITECTURES
        for kernel in parse(compiled(nvcc, source, architecture))
    ]
    status, why = verdict(kernels)
    print(readable(table(kernels)))
    print(readable(why))
    return status


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found.group(1)) if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
