"""The machine of a GPU check, and the tools that are missing on it."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from scripts.gpu import results as gpu_results
from scripts.gpu.measure import nccl as gpu_nccl

TOOLS = ("g++", "make", "cmake", "ninja", "nvcc", "ip", "tc", "nsenter", "unshare", "timeout")
PACKAGES = ("torch", "setuptools", "pip", "pytest", "pytest-timeout", "numpy", "psutil")
CUDA_TOOLS = Path("/usr/local/cuda/bin")


def said_by(*command: str) -> str:
    """What a command prints; empty where it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def tools() -> dict[str, str | None]:
    """Where each is; None: it is not there."""
    path = os.pathsep.join([os.environ.get("PATH", ""), str(CUDA_TOOLS)])
    return {name: shutil.which(name, path=path) for name in TOOLS}


def versions() -> dict[str, str | None]:
    found = {
        str(one.metadata["Name"]).lower(): one.version for one in importlib.metadata.distributions()
    }
    return {name: found.get(name) for name in PACKAGES}


def gpu() -> dict[str, Any] | None:
    import torch

    if not torch.cuda.is_available():
        return None
    seen = torch.cuda.get_device_properties(0)
    query = "--query-gpu=name,driver_version,clocks.sm,clocks.mem,compute_mode"
    return {
        "name": seen.name,
        "count": torch.cuda.device_count(),
        "memory_bytes": seen.total_memory,
        "multiprocessors": seen.multi_processor_count,
        "capability": f"{seen.major}.{seen.minor}",
        "nvidia_smi": said_by("nvidia-smi", query, "--format=csv,noheader"),
    }


def facts() -> dict[str, Any]:
    import torch

    here = tools()
    compiler = said_by(here["nvcc"] or "nvcc", "--version").splitlines()
    headers = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "user": os.geteuid(),
        "tools": {name: place is not None for name, place in here.items()},
        "packages": versions(),
        "python_headers": headers.is_file(),
        "nvcc": compiler[-1] if compiler else None,
        "torch_cuda": torch.version.cuda,
        "cxx11_abi": torch.compiled_with_cxx11_abi(),
        "nccl": gpu_nccl.in_words(gpu_nccl.beside_torch()),
        "gpu": gpu(),
    }


def lacking(found: dict[str, Any]) -> list[str]:
    """What the build needs and has not."""
    needed = [name for name in ("g++", "make", "cmake") if not found["tools"][name]]
    return needed + ([] if found["python_headers"] else ["Python.h"])


def headline(found: dict[str, Any]) -> str:
    card = found["gpu"]
    words = [card["name"] if card else "no GPU", f"torch {found['packages']['torch']}"]
    words += [f"CUDA {found['torch_cuda']}, NCCL {found['nccl']}"] if found["torch_cuda"] else []
    words += [f"Python {found['python']}", f"{found['cores']} cores"]
    missing = lacking(found)
    return ", ".join(words) + (f"; the build lacks {', '.join(missing)}" if missing else "")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options = parser.parse_args(arguments)
    found = facts()
    gpu_results.report(headline(found), **found)
    return 1 if options.device == "cuda" and found["gpu"] is None else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
