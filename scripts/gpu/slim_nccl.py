"""A copy of libnccl.so.2 with the device code of one architecture: the rest becomes zeros.

The whole library is over 200 MB. Nothing moves inside the file, so all addresses stay right; what
is zero compresses away. Layout: the containers of .nv_fatbin, each with entries for architectures.
"""

from __future__ import annotations

import argparse
import lzma
import re
import struct
import subprocess
import sys
from pathlib import Path

SECTIONS = (".nv_fatbin", "__nv_relfatbin")  # linked images, and the relocatable ones behind them
MAGIC = 0xBA55ED50
HEADER = struct.Struct("<IHHQ")  # magic, version, bytes of the header, bytes of the entries
ENTRY = struct.Struct("<HHIQ")  # kind, version, bytes of its header, bytes of its code
ARCHITECTURE_AT = 28  # in an entry
MACHINE_CODE = 2  # kind of an entry that is no PTX
ALIGNMENT = 8


class SlimError(ValueError):
    """The library is not what is expected; the message says what was found."""


def sections(listing: str) -> list[tuple[int, int]]:
    """(offset, size) of those with device code, from `readelf -SW`."""
    found = []
    for name in SECTIONS:
        match = re.search(
            rf"\s{re.escape(name)}\s+\S+\s+\S+\s+([0-9a-f]+)\s+([0-9a-f]+)\s", listing
        )
        if match:
            found.append((int(match.group(1), 16), int(match.group(2), 16)))
    return found


def slim_section(library: bytearray, offset: int, size: int, architecture: int) -> int:
    """Bytes of device code that were kept. A container without any is left alone."""
    kept, position, end = 0, offset, offset + size
    while position + HEADER.size <= end:
        magic, _, header, length = HEADER.unpack_from(library, position)
        if magic != MAGIC:
            position += ALIGNMENT
            continue
        begin = position + header
        body = _entries_of(library, begin, begin + length, architecture)
        if body:
            library[begin : begin + length] = body + bytes(length - len(body))
            struct.pack_into("<Q", library, position + 8, len(body))
            kept += len(body)
        position = -(-(begin + length) // ALIGNMENT) * ALIGNMENT
    return kept


def _entries_of(library: bytearray, begin: int, end: int, architecture: int) -> bytes:
    body = b""
    while begin < end:
        kind, _, header, length = ENTRY.unpack_from(library, begin)
        (built_for,) = struct.unpack_from("<I", library, begin + ARCHITECTURE_AT)
        if kind == MACHINE_CODE and built_for == architecture:
            body += bytes(library[begin : begin + header + length])
        begin += header + length
    return body


def slim(source: Path, target: Path, architecture: int) -> int:
    """Writes the copy, stripped and packed with xz; the bytes of device code in it."""
    listing = subprocess.run(
        ["readelf", "-SW", str(source)], capture_output=True, text=True, check=True
    ).stdout
    library = bytearray(source.read_bytes())
    kept = sum(slim_section(library, *place, architecture) for place in sections(listing))
    if not kept:
        raise SlimError(f"{source} has no device code for sm_{architecture} in {SECTIONS}")
    plain = target.with_suffix(".slim")
    plain.write_bytes(library)
    subprocess.run(["strip", "--strip-unneeded", str(plain)], check=True)
    with lzma.open(target, "wb", preset=9) as packed:
        packed.write(plain.read_bytes())
    plain.unlink()
    return kept


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path, help="such as libnccl.so.2.xz")
    parser.add_argument("--architecture", type=int, default=90)
    options = parser.parse_args(arguments)
    kept = slim(options.source, options.target, options.architecture)
    size = options.target.stat().st_size
    print(f"{options.target}: {kept / 1e6:.0f} MB of device code kept, {size / 1e6:.0f} MB packed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
