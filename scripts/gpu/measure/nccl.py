"""Which NCCL a process has bound, and whether that one lets ranks share a GPU.

torch reports the version it was compiled with; what is loaded can be another one.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from pathlib import Path

from scripts.gpu import results as gpu_results

SHARING = 23_000  # NCCL 2.30: NCCL_MULTI_RANK_GPU_ENABLE


def version_in(library: ctypes.CDLL) -> int | None:
    """Such as 22809 for 2.28.9; None: it is no NCCL."""
    found = ctypes.c_int()
    try:
        status = library.ncclGetVersion(ctypes.byref(found))
    except AttributeError:
        return None
    return None if status else found.value


def loaded() -> int | None:
    """Of the NCCL that this process has bound, once torch is there."""
    import torch  # noqa: F401  (it loads its own NCCL, unless there is one already)

    return version_in(ctypes.CDLL(None))


def beside_torch() -> int | None:
    """Of the package that torch came with, wherever it lies."""
    for folder in map(Path, sys.path):
        library = folder / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
        if library.is_file():
            return version_in(ctypes.CDLL(str(library)))
    return None


def in_words(version: int | None) -> str:
    if version is None:
        return "none"
    return f"{version // 10_000}.{version // 100 % 100}.{version % 100}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device")
    parser.parse_args(arguments)
    version = loaded()
    text = f"NCCL {in_words(version)}"
    if version is None or version < SHARING:
        gpu_results.leave_out(
            f"{text} is loaded; ranks share a GPU from 2.30 on: scripts/gpu_check.sh --prepare "
            "--nccl 2.30.7, and carry it",
            version=version,
        )
    gpu_results.report(f"{text} is loaded, and lets ranks share a GPU", version=version)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
