"""Folders that travel to the other machine as one tightly packed file each: NAME.tar.xz."""

from __future__ import annotations

import fcntl
import lzma
import os
import shutil
import tarfile
from pathlib import Path

from scripts.horovod.source import extract

WHEELS, TOOLS = "wheels", "tools"
# Code of x86 packs better after the first of these; wheels and tools are little else.
FILTERS = [
    {"id": lzma.FILTER_X86},
    {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 96 << 20},
]


def packed(carry: Path, name: str) -> Path:
    return carry / f"{name}.tar.xz"


def pack(folder: Path, carry: Path) -> None:
    """The folder's name becomes the file's."""
    target = packed(carry, folder.name)
    partial = target.with_name(f".{target.name}")
    with (
        lzma.open(partial, "wb", format=lzma.FORMAT_XZ, filters=FILTERS) as stream,
        tarfile.open(fileobj=stream, mode="w") as archive,
    ):
        archive.add(folder, folder.name)
    partial.replace(target)


def unpack(carry: Path) -> None:
    """Of those that came, what is not unpacked yet. Checks that run side by side wait for one."""
    if not carry.is_dir():
        return
    # Of the folder itself, lest a file of it travels.
    descriptor = os.open(carry, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        for name in (WHEELS, TOOLS):
            source, target = packed(carry, name), carry / name
            if source.is_file() and not target.exists():
                partial = carry / f".{name}"
                shutil.rmtree(partial, ignore_errors=True)
                extract(source, partial)
                (partial / name).replace(target)
                partial.rmdir()
    finally:
        os.close(descriptor)


def names_in(carry: Path, name: str) -> list[str]:
    """Of the files in such a folder, packed or not."""
    if packed(carry, name).is_file():
        with tarfile.open(packed(carry, name)) as archive:
            return [Path(one.name).name for one in archive if one.isfile()]
    return [path.name for path in (carry / name).rglob("*") if path.is_file()]
