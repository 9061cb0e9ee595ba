"""Building on a bare machine: which commands, in which environment, and what is kept of it."""

from __future__ import annotations

import lzma
import shutil
import tarfile
from pathlib import Path

import pytest

from scripts.gpu import build
from tests.unit.scripts.conftest import SCRIPTS


def test_commands_are_those_of_the_project(tmp_path: Path) -> None:
    place, carry = build.Place(tmp_path / "work", "staged"), tmp_path / "carry"
    steps = {step.name: step for step in build.steps(place, carry, [carry / "wheels" / "a.whl"])}
    assert list(steps) == ["packages", "horovod", "extension", "import"]
    python = str(tmp_path / "work" / "staged" / "venv" / "bin" / "python")
    sdist = str(carry / "horovod-0.28.1.tar.gz")
    installer = str(SCRIPTS / "install_horovod.sh")
    assert steps["horovod"].command == (
        *(installer, "--python", python, "--gpu", "staged", "--sdist", sdist),
    )
    assert Path(installer).is_file()
    assert steps["packages"].command[-1] == str(carry / "wheels" / "a.whl")
    assert steps["extension"].folder == place.tree
    assert "packages" not in [step.name for step in build.steps(place, carry, [])]


def test_nothing_is_fetched_and_no_setting_of_the_caller_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFT_POLICY", "bucket")
    monkeypatch.setenv("HOROVOD_GPU_OPERATIONS", "NCCL")
    place = build.Place(tmp_path, "nccl")
    made = build.environment(place, tmp_path / "carry", "90")
    assert made["PIP_NO_INDEX"] == "1"
    assert made["PIP_FIND_LINKS"] == str(tmp_path / "carry" / "wheels")
    assert made["HOROVOD_BUILD_CUDA_CC_LIST"] == "90"
    assert made["XDG_CACHE_HOME"] == str(tmp_path / "cache")
    assert made["PATH"].startswith(str(place.python.parent))
    assert not {"DEFT_POLICY", "HOROVOD_GPU_OPERATIONS"} & set(made)
    assert "HOROVOD_BUILD_CUDA_CC_LIST" not in build.environment(place, tmp_path, "")


def small_tree(root: Path, text: str = "int x;") -> None:
    for name in ("csrc", "deft_horovod", "build", "scripts"):
        (root / name).mkdir(parents=True)
    (root / "csrc" / "a.cpp").write_text(text)
    (root / "setup.py").write_text("")
    (root / "deft_horovod" / "_C.old.so").write_text("of another kind")
    (root / "build" / "junk").write_text("")


def test_each_kind_has_a_tree_of_its_own_without_what_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_tree(tmp_path / "root")
    monkeypatch.setattr(build, "ROOT", tmp_path / "root")
    place = build.Place(tmp_path / "work", "staged")
    build.copy_tree(place.tree)
    files = sorted(p.name for p in place.tree.rglob("*") if p.is_file())
    assert files == ["a.cpp", "setup.py"]


def test_what_was_built_serves_the_next_machine_and_no_other_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, out = tmp_path / "root", tmp_path / "out"
    small_tree(root)
    out.mkdir()
    monkeypatch.setattr(build, "ROOT", root)
    first = build.Place(tmp_path / "first", "staged")
    build.copy_tree(first.tree)
    (first.tree / "deft_horovod" / "_C.so").write_text("new")
    wheel = first.work / "cache" / "deft_horovod" / "wheels" / "key" / "horovod-0.28.1.whl"
    wheel.parent.mkdir(parents=True)
    wheel.write_text("wheel")
    build.keep_extension(first)
    build.keep_built(first, out)
    with tarfile.open(out / build.BUILT) as archive:
        assert "deft_horovod/wheels/key/horovod-0.28.1.whl" in archive.getnames()

    second = build.Place(tmp_path / "second", "staged")
    build.copy_tree(second.tree)
    assert not build.restore_extension(second)
    build.restore_built(second, out)
    assert build.restore_extension(second)
    assert (second.tree / "deft_horovod" / "_C.so").read_text() == "new"
    assert not build.restore_extension(build.Place(tmp_path / "second", "nccl"))
    (second.tree / "csrc" / "a.cpp").write_text("int y;")
    assert not build.restore_extension(second)


def test_a_changed_tree_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ROOT", tmp_path / "root")
    names = set()
    for text in ("int x;", "int y;"):
        shutil.rmtree(tmp_path / "root", ignore_errors=True)
        small_tree(tmp_path / "root", text)
        build.tree_state.cache_clear()
        names.add(build.Place(tmp_path, "staged").done)
    build.tree_state.cache_clear()
    assert len(names) == 2


def test_a_carried_nccl_is_unpacked(tmp_path: Path) -> None:
    carry, place = tmp_path / "carry", build.Place(tmp_path / "work", "nccl")
    carry.mkdir()
    place.work.mkdir()
    build.unpack_nccl(place, carry)
    assert not (place.work / build.NCCL).exists()
    with lzma.open(carry / f"{build.NCCL}.xz", "wb") as packed:
        packed.write(b"library")
    build.unpack_nccl(place, carry)
    assert (place.work / build.NCCL).read_bytes() == b"library"


def test_without_the_source_of_horovod_nothing_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--kind", "staged"]
    for name in ("work", "carry", "out"):
        words += [f"--{name}", str(tmp_path / name)]
    assert build.main(words) == 1
    assert "horovod-0.28.1.tar.gz is missing: scripts/gpu_check.sh --prepare" in (
        capsys.readouterr().out
    )
    assert not (tmp_path / "work").exists()
