"""What travels in one file comes out as it went in."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.gpu import carried


def test_a_folder_travels_as_one_file(tmp_path: Path) -> None:
    folder, carry = tmp_path / carried.WHEELS, tmp_path / "carry"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.whl").write_bytes(bytes(range(256)) * 100)
    (folder / "inner" / "b").write_text("b")
    (folder / "inner" / "b").chmod(0o755)
    carry.mkdir()
    assert carried.names_in(carry, carried.WHEELS) == []
    carried.pack(folder, carry)
    assert [path.name for path in carry.iterdir()] == ["wheels.tar.xz"]
    assert sorted(carried.names_in(carry, carried.WHEELS)) == ["a.whl", "b"]
    carried.unpack(carry)
    there = carry / carried.WHEELS
    assert (there / "a.whl").read_bytes() == (folder / "a.whl").read_bytes()
    assert (there / "inner" / "b").stat().st_mode & 0o111
    assert sorted(path.name for path in carry.iterdir()) == ["wheels", "wheels.tar.xz"]


def test_checks_side_by_side_unpack_once(tmp_path: Path) -> None:
    folder, carry = tmp_path / carried.WHEELS, tmp_path / "carry"
    folder.mkdir()
    for number in range(50):
        (folder / f"{number}.whl").write_bytes(os.urandom(1000))
    carry.mkdir()
    carried.pack(folder, carry)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(carried.unpack, [carry] * 4))
    assert len(list((carry / carried.WHEELS).iterdir())) == 50
    assert sorted(path.name for path in carry.iterdir()) == ["wheels", "wheels.tar.xz"]


def test_where_nothing_came_nothing_is_unpacked(tmp_path: Path) -> None:
    carried.unpack(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_what_is_unpacked_stays(tmp_path: Path) -> None:
    folder = tmp_path / carried.TOOLS
    folder.mkdir()
    (folder / "one").write_text("packed")
    carried.pack(folder, tmp_path)
    (folder / "one").write_text("changed")
    carried.unpack(tmp_path)
    assert (folder / "one").read_text() == "changed"
    assert carried.names_in(tmp_path, carried.TOOLS) == ["one"]
