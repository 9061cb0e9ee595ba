"""What install_horovod.sh and wheel.sh can be told of how Horovod is built."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_build_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mpi", action="store_true", help="build with MPI beside Gloo")
    parser.add_argument(
        "--gpu",
        choices=("auto", "nccl", "staged", "none"),
        default="auto",
        help="how CUDA tensors travel; auto: nccl if torch has CUDA and nvcc is there, else none",
    )
    parser.add_argument("--sdist", type=Path, help="Horovod's sdist, for machines without network")
    parser.add_argument(
        "--tree",
        type=Path,
        help="a checkout of Horovod with its submodules, such as of its main branch, to build "
        "instead of the published source",
    )
