"""NVIDIA's MPS: processes compute on a GPU at the same time.

Without it ranks that share one have it in turns of milliseconds, and each message of NCCL waits for
a turn of every rank.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

CONTROL = "nvidia-cuda-mps-control"


def variables(folder: Path) -> dict[str, str]:
    """Of a process that takes part. Where no server runs it has its turns as ever."""
    return {
        "CUDA_MPS_PIPE_DIRECTORY": str(folder / "mps"),
        "CUDA_MPS_LOG_DIRECTORY": str(folder / "mps-log"),
    }


@contextlib.contextmanager
def running(folder: Path) -> Iterator[bool]:
    """A server while the context lasts; says whether there is one."""
    control, environment = shutil.which(CONTROL), {**os.environ, **variables(folder)}
    if control is None:
        yield False
        return
    for place in variables(folder).values():
        Path(place).mkdir(parents=True, exist_ok=True)
    started = subprocess.run([control, "-d"], env=environment, check=False).returncode == 0
    try:
        yield started
    finally:
        subprocess.run([control], input="quit\n", text=True, env=environment, check=False)
