"""Horovod's source tree: checked, unpacked once, whole for everybody, and mended."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from tests.places import ROOT

SCRIPTS = ROOT / "scripts"


def make_sdist(path: Path, version: str, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"horovod-{version}/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def sdist(source: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make_sdist(tmp_path / "horovod-9.9.tar.gz", "9.9", {"horovod/common/common.h": "// h\n"})
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(source.SHA256_OF_SDIST, "9.9", digest)
    return path


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be downloaded."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "/nonexistent")


@pytest.mark.usefixtures("offline")
def test_unpacks_once_and_then_only_looks(source: ModuleType, sdist: Path) -> None:
    folder = source.ensure_source("9.9", sdist)
    header = folder / "horovod" / "common" / "common.h"
    assert header.read_text() == "// h\n"
    before = header.stat().st_ino
    assert source.ensure_source("9.9") == folder
    assert header.stat().st_ino == before
    assert sorted(path.name for path in folder.parent.iterdir()) == ["src", "src.sha256"]


def changed(folder: Path) -> None:
    (folder / "horovod" / "common" / "common.h").write_text("// H\n")


def renamed(folder: Path) -> None:
    header = folder / "horovod" / "common" / "common.h"
    header.rename(header.with_name("commoner.h"))


def added(folder: Path) -> None:
    (folder / "horovod" / "common" / "torch.h").write_text("")


def removed(folder: Path) -> None:
    (folder / "horovod" / "common" / "common.h").unlink()


def linked(folder: Path) -> None:
    """To a file of the same content: whoever changes that one changes what is compiled."""
    header = folder / "horovod" / "common" / "common.h"
    outside = folder.parents[1] / "elsewhere.h"
    header.rename(outside)
    header.symlink_to(outside)


def unrecorded(folder: Path) -> None:
    (folder.parent / "src.sha256").unlink()


@pytest.mark.parametrize("damage", [changed, renamed, added, removed, linked, unrecorded])
def test_a_tree_that_is_not_what_was_unpacked_is_made_anew(
    source: ModuleType,
    sdist: Path,
    damage: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = source.ensure_source("9.9", sdist)
    good = source.digest(folder)
    damage(folder)
    bad = source.digest(folder)
    assert source.ensure_source("9.9", sdist) == folder
    said = capsys.readouterr().err
    assert f"{folder} is not used: its sha256 is {bad}" in said
    if damage is unrecorded:
        assert "there is no src.sha256 to compare with" in said
    else:
        assert bad != good
        assert f"expected {good}" in said
    assert source.digest(folder) == good
    assert not (folder / "horovod" / "common" / "common.h").is_symlink()
    assert sorted(path.name for path in folder.parent.iterdir()) == ["src", "src.sha256"]
    source.ensure_source("9.9")
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("offline")
def test_a_damaged_tree_is_no_way_out_when_nothing_can_be_downloaded(
    source: ModuleType, sdist: Path
) -> None:
    changed(source.ensure_source("9.9", sdist))
    for _ in range(2):
        with pytest.raises(source.SourceError, match="--sdist PATH"):
            source.ensure_source("9.9")


def test_two_at_once_see_one_whole_tree(source: ModuleType, sdist: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: source.ensure_source("9.9", sdist), range(16)))
    assert len(set(folders)) == 1
    assert (folders[0] / "horovod" / "common" / "common.h").is_file()
    assert sorted(path.name for path in folders[0].parent.iterdir()) == ["src", "src.sha256"]


def test_two_at_once_mend_one_tree(source: ModuleType, sdist: Path) -> None:
    changed(source.ensure_source("9.9", sdist))
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: source.ensure_source("9.9", sdist), range(16)))
    assert source.is_intact(folders[0])


def test_refuses_another_file_and_names_both_sums(
    source: ModuleType, sdist: Path, tmp_path: Path
) -> None:
    other = make_sdist(tmp_path / "other.tar.gz", "9.9", {"setup.py": "evil\n"})
    with pytest.raises(source.SourceError) as caught:
        source.ensure_source("9.9", other)
    message = str(caught.value)
    assert hashlib.sha256(other.read_bytes()).hexdigest() in message
    assert source.SHA256_OF_SDIST["9.9"] in message
    assert not source.source_folder("9.9").exists()


def test_checks_the_sum_even_when_unpacked_already(
    source: ModuleType, sdist: Path, tmp_path: Path
) -> None:
    source.ensure_source("9.9", sdist)
    with pytest.raises(source.SourceError, match="not the published sdist"):
        source.ensure_source("9.9", make_sdist(tmp_path / "other.tar.gz", "9.9", {"a": "b"}))


def test_names_a_missing_file(source: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(source.SourceError, match=r"There is no file .*nothing\.tar\.gz"):
        source.ensure_source("0.28.1", tmp_path / "nothing.tar.gz")


def test_unknown_version_lists_the_known_ones(source: ModuleType) -> None:
    with pytest.raises(source.SourceError, match=r"0\.27\.0 is not supported.*0\.28\.1"):
        source.ensure_source("0.27.0")


def test_takes_the_sdist_from_the_environment(
    source: ModuleType, sdist: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFT_HOROVOD_SDIST", str(sdist))
    assert source.ensure_source("9.9").is_dir()


@pytest.mark.usefixtures("offline")
def test_failed_download_says_how_to_do_without(source: ModuleType) -> None:
    with pytest.raises(source.SourceError, match="--sdist PATH"):
        source.ensure_source("0.28.1")


def test_command_line_prints_the_folder(source: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "deft_horovod" / "horovod-0.28.1" / "src"
    folder.mkdir(parents=True)
    source.write_record(folder)
    done = subprocess.run(
        [sys.executable, "-m", "scripts.horovod.source", "--version", "0.28.1"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "DEFT_HOROVOD_SDIST": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(folder)
