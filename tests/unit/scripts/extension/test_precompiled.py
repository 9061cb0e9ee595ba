"""Precompiled headers are taken where they fit, made anew where they do not, and never needed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts.extension.precompiled import HEADERS, before_ninja, precompile
from tests.places import ROOT

FLAGS = ["-O1", "-DWHICH=1"]

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for header in HEADERS:
        path = tmp_path / "csrc" / header
        path.parent.mkdir(parents=True)
        path.write_text("#pragma once\ninline int answer() { return 42; }\n")
    (tmp_path / "csrc" / "torch" / "one.cpp").write_text(
        f'#include "{HEADERS[0]}"\n#include "{HEADERS[0]}"\nint main() {{ return answer(); }}\n'
    )
    return tmp_path / "csrc"


def taken(sources: Path, folder: Path, flags: list[str]) -> bool:
    """Whether the compiler takes it; the file compiles in any case."""
    command = ["g++", "-H", "-Werror", *flags, f"-I{folder}", f"-I{sources}", "-c"]
    done = subprocess.run(
        [*command, str(sources / "torch" / "one.cpp"), "-o", str(folder / "one.o")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return f"! {folder / HEADERS[0]}.gch" in done.stderr


def test_it_is_taken_by_a_file_with_the_same_flags_only(sources: Path, tmp_path: Path) -> None:
    folder = tmp_path / "precompiled"
    precompile("g++", FLAGS, sources, folder)
    assert taken(sources, folder, FLAGS)
    assert not taken(sources, folder, ["-O1", "-DWHICH=2"])


def test_it_is_made_anew_when_flags_or_headers_change(sources: Path, tmp_path: Path) -> None:
    folder = tmp_path / "precompiled"
    target = folder / f"{HEADERS[1]}.gch"

    def made() -> int:
        precompile("g++", FLAGS, sources, folder)
        return target.stat().st_mtime_ns

    first = made()
    assert made() == first
    (sources / HEADERS[0]).write_text("#pragma once\n")
    assert made() > first
    second = target.stat().st_mtime_ns
    precompile("g++", ["-O2"], sources, folder)
    assert target.stat().st_mtime_ns > second


def test_a_header_that_does_not_compile_leaves_nothing(sources: Path, tmp_path: Path) -> None:
    folder = tmp_path / "precompiled"
    (sources / HEADERS[0]).write_text("#error no\n")
    precompile("g++", FLAGS, sources, folder)
    assert not (folder / f"{HEADERS[0]}.gch").exists()


def test_the_build_of_torch_is_told_before_it_compiles(sources: Path, tmp_path: Path) -> None:
    folder, calls = tmp_path / "precompiled", []

    def compile_objects(**named: object) -> None:
        calls.append((named, (folder / f"{HEADERS[0]}.gch").is_file()))

    module = SimpleNamespace(
        _write_ninja_file_and_compile_objects=compile_objects, get_cxx_compiler=lambda: "g++"
    )
    flags = {"cflags": ["-O1"], "post_cflags": ["'-DWHICH=1'"]}
    with before_ninja(module, sources, folder):
        module._write_ninja_file_and_compile_objects(**flags)
    assert calls == [(flags, True)]
    assert module._write_ninja_file_and_compile_objects is compile_objects
    assert taken(sources, folder, FLAGS)


def test_another_torch_compiles_without(sources: Path, tmp_path: Path) -> None:
    with before_ninja(SimpleNamespace(), sources, tmp_path / "precompiled"):
        pass
    assert not (tmp_path / "precompiled").exists()


@pytest.mark.parametrize("room", ["torch", "bindings"])
def test_every_file_of_these_rooms_includes_it_first(room: str) -> None:
    (header,) = (header for header in HEADERS if header.startswith(room))
    files = sorted((ROOT / "csrc" / room).rglob("*.cpp"))
    assert files
    for path in files:
        includes = [line for line in path.read_text().splitlines() if line.startswith("#include")]
        assert includes[0] == f'#include "{header}"', path
