"""What is gathered for a machine without network."""

from __future__ import annotations

import importlib.metadata
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts.gpu import prepare


def a_wheel(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("one/code.py", "x = 1\n" * 100)
        wheel.writestr("one-1.0.dist-info/RECORD", "one/code.py,,\n")


def test_wheels_are_of_the_versions_that_are_tested_here(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict(entry.split("==") for entry in prepare.installed_versions())
    assert found["ortools"] == importlib.metadata.version("ortools")
    assert set(found) == set(prepare.PACKAGES)
    monkeypatch.setattr(prepare, "PACKAGES", ("no-such-package",))
    with pytest.raises(prepare.PrepareError, match=r"not installed here; run scripts/setup\.sh"):
        prepare.installed_versions()


def test_wheels_are_of_the_other_machine(tmp_path: Path) -> None:
    command = " ".join(prepare.wheel_command(["one==1"], tmp_path))
    assert "--python-version 3.12" in command
    assert "--platform manylinux_2_28_x86_64" in command
    assert "--no-deps --only-binary=:all:" in command
    assert command.endswith(f"--dest {tmp_path} one==1")


def test_a_download_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(returncode=1, stdout="", stderr="no route")
    monkeypatch.setattr(prepare, "subprocess", SimpleNamespace(run=lambda *_, **__: failed))
    with pytest.raises(prepare.PrepareError, match="could not download one:\nno route"):
        prepare.download(["one"], tmp_path)


def test_unpacking_changes_nothing_inside(tmp_path: Path) -> None:
    a_wheel(tmp_path / "old.whl")
    prepare.unpacked(tmp_path / "old.whl", tmp_path / "new.whl")
    with zipfile.ZipFile(tmp_path / "old.whl") as old, zipfile.ZipFile(tmp_path / "new.whl") as new:
        assert new.namelist() == old.namelist()
        assert [new.read(name) for name in new.namelist()] == [
            old.read(name) for name in old.namelist()
        ]
        kinds = {entry.compress_type for entry in new.infolist()}
        assert kinds == {zipfile.ZIP_STORED}


def test_what_is_not_there_is_named_with_what_it_means(tmp_path: Path) -> None:
    everything = "\n".join(prepare.missing(tmp_path))
    for words in ("Horovod cannot be built", "wheels of ortools", "--nccl 2.30.7", "ip and tc"):
        assert words in everything
    (tmp_path / "wheels").mkdir()
    for name in prepare.PACKAGES:
        (tmp_path / "wheels" / f"{name.replace('-', '_')}-1.0-py3-none-any.whl").touch()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "ip").touch()
    (tmp_path / "horovod-0.28.1.tar.gz").touch()
    assert len(prepare.missing(tmp_path)) == 1
    (tmp_path / "libnccl.so.2.xz").touch()
    assert prepare.missing(tmp_path) == []


def test_too_much_to_carry_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bring_sdist", "bring_wheels", "bring_tools"):
        monkeypatch.setattr(prepare, name, lambda carry: (carry / "file").write_bytes(b"x" * 1000))
    monkeypatch.setattr(prepare, "tree_bytes", lambda: 500)
    said = prepare.prepare(tmp_path / "carry", None)
    assert "not there: horovod-0.28.1.tar.gz" in said
    monkeypatch.setattr(prepare, "LIMIT_BYTES", 1400)  # all three write the same file
    with pytest.raises(prepare.PrepareError, match="that may travel; leave NCCL out"):
        prepare.prepare(tmp_path / "carry", None)


def test_the_tree_is_what_git_knows_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "known").write_bytes(b"x" * 10)
    (tmp_path / "unknown").write_bytes(b"x" * 1000)
    subprocess.run(["git", "-C", str(tmp_path), "add", "known"], check=True)
    monkeypatch.setattr(prepare, "ROOT", tmp_path)
    assert prepare.tree_bytes() == 10
