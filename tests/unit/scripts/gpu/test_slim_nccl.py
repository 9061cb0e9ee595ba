"""Of a library's device code one architecture stays, where it was."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from scripts.gpu import slim_nccl as slimmer

LISTING = """
  [27] .nv_fatbin        PROGBITS        0000000000200000 100000 000400 00   A  0   0  8
  [28] __nv_relfatbin    PROGBITS        0000000000300000 100400 000020 00   A  0   0  8
  [29] .comment          PROGBITS        0000000000000000 100420 000020 01  MS  0   0  1
"""


def entry(architecture: int, code: bytes, kind: int = 2) -> bytes:
    head = struct.pack("<HHIQ", kind, 1, 64, len(code)) + bytes(12)
    return (head + struct.pack("<I", architecture)).ljust(64, b"\0") + code


def container(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_sections_are_found_by_name() -> None:
    assert slimmer.sections(LISTING) == [(0x100000, 0x400), (0x100400, 0x20)]


def test_only_one_architecture_stays() -> None:
    old, wanted, text = entry(80, b"A" * 40), entry(90, b"B" * 48), entry(90, b"P" * 8, kind=1)
    other = entry(80, b"C" * 24)
    whole = b"before.." + container(old, wanted, text) + container(other) + b"after..."
    library = bytearray(whole)
    kept = slimmer.slim_section(library, 8, len(whole) - 16, 90)
    assert kept == len(wanted)
    assert len(library) == len(whole), "nothing moves"
    magic, _, header, length = struct.unpack_from("<IHHQ", library, 8)
    assert (magic, header, length) == (0xBA55ED50, 16, len(wanted))
    assert bytes(library[24 : 24 + length]) == wanted
    assert set(library[24 + length : 24 + len(old + wanted + text)]) == {0}
    assert bytes(library).endswith(container(other) + b"after..."), "one without it is left alone"


def test_a_library_without_that_code_is_refused(tmp_path: Path) -> None:
    source = Path("/bin/true").resolve()
    with pytest.raises(slimmer.SlimError, match="no device code for sm_90"):
        slimmer.slim(source, tmp_path / "out.xz", 90)
    assert not (tmp_path / "out.xz").exists()
