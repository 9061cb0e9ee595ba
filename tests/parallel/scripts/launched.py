"""What the launcher says before the ranks meet: horovodrun, mpirun or torchrun."""

from __future__ import annotations

import os


def rank() -> int:
    """Of this process."""
    return _number("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "RANK")


def size() -> int:
    """Of the job."""
    return _number("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "WORLD_SIZE")


def _number(*names: str) -> int:
    return next(int(os.environ[name]) for name in names if name in os.environ)
